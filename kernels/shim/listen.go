//go:build linux

package shim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cellblock/kernels/stream"
)

// listen opens what Config.Listen names.
func listen(c stream.Config) (net.Listener, error) {
	kind, rest, _ := strings.Cut(c.Listen, ":")
	switch kind {
	case "unix":
		return listenUnix(rest)
	case "take":
		return stream.TakeListener(rest)
	case "fd":
		return listenFD(rest)
	}
	return listenStdio(c.AttachKey)
}

// listenUnix makes a socket that only the own user can connect to. One that a dead shim left is replaced.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		_ = os.Remove(path)
	}
	old := unix.Umask(0o177) // from the first moment on; nothing else makes files yet
	defer unix.Umask(old)
	return net.Listen("unix", path)
}

// listenFD takes over a listening socket.
func listenFD(number string) (net.Listener, error) {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close() // FileListener has its own
	return net.FileListener(f)
}

// listenStdio offers connections over stdin and stdout. The pipes are made non-blocking, so that a write can be given up.
func listenStdio(key string) (net.Listener, error) {
	for fd := range 2 {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, fmt.Errorf("stdio: %w", err)
		}
	}
	in, out := os.NewFile(0, "stdin"), os.NewFile(1, "stdout")
	server, err := stream.NewAttachServer(in, out, key)
	if err != nil {
		return nil, err
	}
	return &stdio{AttachServer: server, in: in}, nil
}

// stdio is an AttachServer that owns stdin.
type stdio struct {
	*stream.AttachServer
	in *os.File
}

// Close ends the reader too.
func (s *stdio) Close() error { return errors.Join(s.AttachServer.Close(), s.in.Close()) }

// errInside is why a connection was refused.
var errInside = errors.New("the peer runs inside the kernel's sandbox")

// checkPeer refuses a peer of the shim's own pid namespace. The system translates the peer's pid into that namespace,
// and to 0 for a process that has none there.
func checkPeer(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil // stdio: whoever holds the pipes holds the container
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if credErr != nil {
		return credErr
	}
	if cred.Pid != 0 {
		return fmt.Errorf("%w: pid %d", errInside, cred.Pid)
	}
	return nil
}
