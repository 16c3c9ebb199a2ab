package docker

import "golang.org/x/sys/unix"

// freeSpace is how many bytes can be written to the file system of a folder by others than root; ok is false where that cannot be told.
func freeSpace(folder string) (bytes int64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
