package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// listenPause is between two attempts to connect to a socket that is not listened on yet.
const listenPause = 2 * time.Millisecond

// socketCarrier is a Unix socket in a folder of the host that only this kernel's container has mounted. Users' code can
// write there too, so what lies in it is opened without following links, and must be a socket.
type socketCarrier struct {
	dir string
}

// makeSocketDir makes the kernel's folder. The kernel's user may create the socket; when the server is root the folder
// is its own and closes once the socket is there (see close).
func makeSocketDir(dir string, uid, gid int) (*socketCarrier, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	c := &socketCarrier{dir: dir}
	var err error
	switch {
	case os.Geteuid() != 0:
	case os.Getegid() == gid:
		err = os.Chown(dir, uid, gid)
	default:
		err = errors.Join(os.Chown(dir, 0, gid), os.Chmod(dir, 0o770))
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// closeFolder takes the right to write from the kernel's user, so that code cannot fill the host's disk from there.
// Where server and kernel are one user there is nothing to take.
func (c *socketCarrier) closeFolder() {
	if os.Geteuid() == 0 {
		_ = os.Chmod(c.dir, 0o750)
	}
}

func (c *socketCarrier) prepare(context.Context) error { return nil }

// await watches the folder until the socket is in it.
func (c *socketCarrier) await(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(c.dir); err != nil {
		return err
	}
	for {
		conn, err := c.dial(ctx)
		if err == nil {
			_ = conn.Close()
			c.closeFolder()
			return nil
		}
		if ctx.Err() != nil || !notYet(err) {
			return errors.Join(ctx.Err(), err)
		}
		var listening <-chan time.Time
		if refused(err) { // it is made, and nothing will tell when it is listened on: that is a moment later
			listening = time.After(listenPause)
		}
		select {
		case <-watcher.Events:
		case <-listening:
		case err := <-watcher.Errors:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notYet reports whether err is that of a socket which is about to be: not made, or made and not yet listened on.
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

func (c *socketCarrier) remove() error { return os.RemoveAll(c.dir) }

var _ carrier = (*socketCarrier)(nil)
