//go:build unix

package mounts

import (
	"os"
	"syscall"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// Writable returns why kernels of a user and a group cannot write to those mounts that are for that, as far as the mode of a
// folder tells. Sources are what Resolve returned.
func Writable(resolved []kernels.Mount, uid, gid int) error {
	for _, m := range resolved {
		info, err := os.Stat(m.Source)
		if !m.Writable || err != nil {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && !writes(info.Mode().Perm(), int(owner.Uid) == uid, int(owner.Gid) == gid) {
			return fault.New(fault.Unavailable, "kernels run as user %d and group %d, which may not write to %s", uid, gid, m.Source).
				WithHint("Type: chown %d %s, or mount it read-only.", uid, m.Source)
		}
	}
	return nil
}

// writes tells whether a folder's mode lets its owner, its group or all others put files into it.
func writes(mode os.FileMode, owner, group bool) bool {
	const writeAndEnter = 0o3
	switch {
	case owner:
		mode >>= 6
	case group:
		mode >>= 3
	}
	return mode&writeAndEnter == writeAndEnter
}
