//go:build linux

package local

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"cellblock/internal/fault"
)

// user is who kernels run as.
type user struct {
	uid, gid int
	// drop tells that the server is root and must become this user for what it starts.
	drop bool
}

// String returns the uid.
func (u user) String() string { return strconv.Itoa(u.uid) }

func kernelUser(c Config) user {
	if os.Geteuid() != 0 {
		return user{uid: os.Geteuid(), gid: os.Getegid()}
	}
	u := user{uid: DefaultUID, gid: DefaultUID, drop: true}
	if c.UID != 0 {
		u.uid, u.gid = c.UID, c.UID
	}
	if c.GID != 0 {
		u.gid = c.GID
	}
	return u
}

// credential is what a process of the user is started with: no group but its own.
func (u user) credential() *syscall.Credential {
	if !u.drop {
		return nil
	}
	return &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.gid), Groups: []uint32{}}
}

// owns tells whether a file belongs to the user.
func (u user) owns(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == u.uid
}

// reaches returns an error that names the first folder on the way to path that the user may not pass. Without a sandbox
// there is no private view of the files that would spare the user the way.
func (u user) reaches(path string) error {
	if !u.drop {
		return nil
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fault.New(fault.Unavailable, "%w", err)
		}
		if !u.may(info, 1) {
			return fault.New(fault.Unavailable, "uid %d, which kernels run as, may not pass %s", u.uid, dir).
				WithHint("Use folders that every user may pass (chmod o+x %s), or the sandbox, which needs none.", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// may tells whether the user has a permission (4 read, 2 write, 1 execute or pass) by a file's mode.
func (u user) may(info fs.FileInfo, bit fs.FileMode) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return false
	case int(st.Uid) == u.uid:
		bit <<= 6
	case int(st.Gid) == u.gid:
		bit <<= 3
	}
	return info.Mode().Perm()&bit != 0
}
