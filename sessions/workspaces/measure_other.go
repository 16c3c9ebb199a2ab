//go:build !unix

package workspaces

import "io/fs"

// diskSize is what a file takes on its disk, about.
func diskSize(info fs.FileInfo) int64 { return info.Size() }
