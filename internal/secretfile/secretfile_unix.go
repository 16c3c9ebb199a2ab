//go:build unix

package secretfile

import (
	"io/fs"
	"os"
	"syscall"
)

// private tells whether only the owner can read or write the file.
func private(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

// ours tells whether the file belongs to this process's user.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// Sealed tells whether not everybody can exchange the folder's files.
func Sealed(info fs.FileInfo) bool {
	return info.Mode().Perm()&0o002 == 0 || info.Mode()&fs.ModeSticky != 0
}
