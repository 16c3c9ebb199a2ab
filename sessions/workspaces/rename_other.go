//go:build !linux

package workspaces

// renameNew is os.Rename to a name that nothing may have yet: the error is fs.ErrExist otherwise.
func renameNew(from, to string) error { return lookAndRename(from, to) }
