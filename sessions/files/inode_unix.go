//go:build unix

package files

import (
	"os"
	"syscall"
)

// inodeOf returns the number that a file has in its file system.
func inodeOf(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}
