//go:build linux && (amd64 || arm64)

package quota

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Check tells whether folders made in dir can be bounded: nil, or what is missing.
func Check(dir string) error {
	f, err := open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	var state quotaState
	if err := control(f, getState, 0, unsafe.Pointer(&state)); err != nil || state.Flags&projectsLimited == 0 {
		return fmt.Errorf("%w: the file system of %s is not mounted with prjquota (ext4 or XFS, Linux 5.14 or newer)", ErrNone, dir)
	}
	return try(dir)
}

// try bounds a folder that is there only for that.
func try(dir string) error {
	probe, err := os.MkdirTemp(dir, ".quota-")
	if err != nil {
		return err
	}
	defer os.Remove(probe)
	if err := Bound(probe, 1<<20); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: only root may set it", ErrNone)
		}
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return Lift(probe)
}

// Bound gives a folder that has a project of its own a limit in bytes, for all in it together. One that has none gets one if
// it is empty; else it stays as it is.
func Bound(dir string, limit int64) error {
	f, err := open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	attr, err := attributes(f)
	if err != nil {
		return err
	}
	if !attr.bound() {
		if names, _ := f.Readdirnames(1); len(names) > 0 {
			return nil
		}
		if attr.Project, err = unused(f); err != nil {
			return err
		}
		attr.Flags |= inherited
		if err := setAttributes(f, attr); err != nil {
			return err
		}
	}
	return setLimit(f, attr.Project, limit)
}

// Join puts an empty folder into the project of another one, or into none if that has none, so that files can be renamed
// from one into the other. Where it is in that project already nothing happens.
func Join(from, to string) error {
	source, err := open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := open(to)
	if err != nil {
		return err
	}
	defer target.Close()
	theirs, err := attributes(source)
	if err != nil {
		return err
	}
	own, err := attributes(target)
	if err != nil || own.Project == theirs.Project {
		return err
	}
	if own.bound() {
		if err := setLimit(target, own.Project, 0); err != nil {
			return err
		}
	}
	own.Project, own.Flags = theirs.Project, own.Flags&^inherited|theirs.Flags&inherited
	return setAttributes(target, own)
}

// Lift takes a folder's limit away, before the folder goes: the file system would keep it for ever.
func Lift(dir string) error {
	f, err := open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	attr, err := attributes(f)
	if err != nil || !attr.bound() {
		return err
	}
	return setLimit(f, attr.Project, 0)
}

func open(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// firstProject is where the numbers begin that are given here, above those that people give by hand (/etc/projid).
const firstProject = 1 << 30

// unused returns a project that nothing is in and that has no limit.
func unused(f *os.File) (uint32, error) {
	for {
		project := firstProject + rand.Uint32N(firstProject)
		var q quotaBlock
		err := control(f, getQuota, project, unsafe.Pointer(&q))
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) { // XFS has not heard of it
			return project, nil
		}
		if err != nil {
			return 0, err
		}
		if q.Space == 0 && q.Inodes == 0 && q.HardBytes == 0 {
			return project, nil
		}
	}
}

// setLimit sets a project's hard limit; 0: none.
func setLimit(f *os.File, project uint32, limit int64) error {
	q := quotaBlock{Valid: validSpace | validFiles}
	if limit > 0 {
		q.HardBytes, q.HardFiles = uint64(max(limit/quotaUnit, 1)), uint64(mostFiles(limit))
	}
	return control(f, setQuota, project, unsafe.Pointer(&q))
}

// fileAttributes is the system's struct fsxattr.
type fileAttributes struct {
	Flags, ExtentSize, Extents, Project, CopyExtentSize uint32
	_                                                   [8]byte
}

// bound tells whether a folder's files are in a project.
func (a fileAttributes) bound() bool { return a.Project != 0 && a.Flags&inherited != 0 }

const (
	getAttributes   = 0x801c581f // FS_IOC_FSGETXATTR
	putAttributes   = 0x401c5820 // FS_IOC_FSSETXATTR
	inherited       = 0x200      // FS_XFLAG_PROJINHERIT
	projectsLimited = 1 << 5     // FS_QUOTA_PDQ_ENFD
	projects        = 2          // PRJQUOTA
	getState        = 0x5805     // Q_XGETQSTAT
	getQuota        = 0x800007   // Q_GETQUOTA
	setQuota        = 0x800008   // Q_SETQUOTA
	quotaUnit       = 1024       // of limits in bytes
	validSpace      = 1          // QIF_BLIMITS
	validFiles      = 4          // QIF_ILIMITS
)

// quotaBlock is the system's struct if_dqblk.
type quotaBlock struct {
	HardBytes, SoftBytes, Space, HardFiles, SoftFiles, Inodes, BytesTime, FilesTime uint64
	Valid                                                                           uint32
	_                                                                               uint32
}

// quotaState is the system's struct fs_quota_stat.
type quotaState struct {
	Version int8
	Flags   uint16
	_       [76]byte
}

// attributes are empty where a file system has none.
func attributes(f *os.File) (a fileAttributes, err error) {
	err = ioctl(f, getAttributes, unsafe.Pointer(&a))
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	return a, err
}

func setAttributes(f *os.File, a fileAttributes) error {
	return ioctl(f, putAttributes, unsafe.Pointer(&a))
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return fmt.Errorf("project of %s: %w", f.Name(), errno)
	}
	return nil
}

// control is quotactl_fd(2), for projects.
func control(f *os.File, command uintptr, project uint32, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), command<<8|projects, uintptr(project), uintptr(arg), 0, 0)
	if errno != 0 {
		return fmt.Errorf("quota of %s: %w", f.Name(), errno)
	}
	return nil
}
