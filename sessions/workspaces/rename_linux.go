package workspaces

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew is os.Rename to a name that nothing may have yet: the error is fs.ErrExist otherwise.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system cannot see to it
		return lookAndRename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
