//go:build unix

package mounts

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// Writable returns why kernels of a user and a group cannot write to those mounts that are for that. Of our own user the system
// says it; of others there are only a folder's owner and mode, and further groups and access lists may let them all the same: then
// it is a doubt, not an error. Sources are what Resolve returned.
func Writable(resolved []kernels.Mount, uid, gid int) (doubt, err error) {
	ourselves := uid != 0 && uid == os.Geteuid() && gid == os.Getegid() // a kernel's root has less power than ours
	for _, m := range resolved {
		info, err := os.Stat(m.Source)
		if !m.Writable || err != nil {
			continue
		}
		if ourselves {
			if unix.Access(m.Source, unix.W_OK|unix.X_OK) != nil {
				return nil, unwritable("may not write", m.Source, uid, gid)
			}
			continue
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if ok && doubt == nil && !writes(info.Mode().Perm(), int(owner.Uid) == uid, int(owner.Gid) == gid) {
			doubt = unwritable("may not be able to write", m.Source, uid, gid)
		}
	}
	return doubt, nil
}

func unwritable(how, source string, uid, gid int) error {
	return fault.New(fault.Unavailable, "kernels run as user %d and group %d, which %s to %s", uid, gid, how, source).
		WithHint("Type: chown %d %s, or mount it read-only.", uid, source)
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
