// Package workspaces gives each session its folder of files and finds it again: after a restart of the server, and in whichever
// process on the same data folder.
//
// A folder has an opaque name, so that no name of a session's is ever a path. A small file beside it, its label NAME.json, says
// whose it is (labels.go). Other processes may use the same data folder, for the same owner too: each finds the folders that
// others have made, and moves or deletes none that another one uses, which the lock NAME.lock tells.
//
// A session's files may be moved to the folder that a pooled kernel has brought (move.go). Where kernels share no files with this
// host, folders only stand for what the provisioner keeps (kept.go).
package workspaces
