package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cellblock/kernels/stream"
)

// dialSocket connects to the socket called name in dir. Neither may be a link: the file is opened first, checked to be a
// socket, and then connected to through its descriptor, so that nobody can swap it in between. That way the path may
// also be longer than the 107 bytes of a socket's address.
func dialSocket(ctx context.Context, dir, name string) (net.Conn, error) {
	folder, err := open(unix.AT_FDCWD, dir, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	file, err := open(int(folder.Fd()), name, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, &os.PathError{Op: "fstat", Path: filepath.Join(dir, name), Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%s is not a socket", filepath.Join(dir, name))
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}

// listenIn makes a socket called name in dir, for this user alone, and listens on it. The file stays when it is closed.
func listenIn(dir, name string) (listeningSocket, error) {
	folder, err := open(unix.AT_FDCWD, dir, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return unixListener{l}, nil
}

// unixListener is a listeningSocket.
type unixListener struct{ *net.UnixListener }

func (l unixListener) give(ctx context.Context) error {
	return stream.GiveListener(ctx, l.UnixListener)
}

// open opens a path without following a link at its end, only to name it.
func open(at int, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(at, name, flags|unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func refused(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }
