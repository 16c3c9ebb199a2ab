package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// socketCarrier is a Unix socket in a folder of the host that only this kernel's container has mounted, and can only read:
// users' code, which may be the same user as the server, could fill the host's disk from there otherwise. So the server
// makes the socket and hands it over to the shim. What lies in the folder is opened without following links all the same,
// and must be a socket.
type socketCarrier struct {
	dir string
	// socket is what the shim is to get; nil once it has it.
	socket listeningSocket
}

// makeSocketDir makes the kernel's folder, and in it the socket, to which the kernel's user may connect.
func makeSocketDir(dir string, uid, gid int) (*socketCarrier, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	c := &socketCarrier{dir: dir}
	var err error
	if c.socket, err = listenIn(dir, socketName); err == nil && os.Geteuid() == 0 {
		err = errors.Join(os.Chown(dir, 0, gid), os.Chmod(dir, 0o750), os.Lchown(filepath.Join(dir, socketName), uid, gid))
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

func (c *socketCarrier) prepare(context.Context) error { return nil }

// await hands the socket over to the shim. From then on its connections are served.
func (c *socketCarrier) await(ctx context.Context) error {
	socket := c.socket
	c.socket = nil
	return socket.give(ctx)
}

// notYet reports whether err is that of a socket which is not made, or which nobody listens on.
func notYet(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || refused(err)
}

func (c *socketCarrier) dial(ctx context.Context) (net.Conn, error) {
	conn, err := dialSocket(ctx, c.dir, socketName)
	if err != nil {
		return nil, fmt.Errorf("the kernel's socket: %w", err)
	}
	return conn, nil
}

func (c *socketCarrier) endsWithShim() bool { return true }

func (c *socketCarrier) log() string { return "" }

func (c *socketCarrier) remove() error {
	if c.socket != nil {
		_ = c.socket.Close()
	}
	return os.RemoveAll(c.dir)
}

// listeningSocket is a socket that is listened on for somebody else.
type listeningSocket interface {
	// give hands it over to the first who connects to it.
	give(ctx context.Context) error
	Close() error
}

var _ carrier = (*socketCarrier)(nil)
