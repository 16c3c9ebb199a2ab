package channels

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"cellblock/kernels/stream"
)

// Times between attempts to connect where nothing tells when the next will succeed.
const (
	firstBackoff = time.Millisecond
	lastBackoff  = 100 * time.Millisecond
)

// dial connects all channels but the heartbeat. Shell, control and stdin share an identity: a kernel addresses its
// questions on stdin to whoever sent the request on shell.
func (cs *Channels) dial(ctx context.Context, d *dialer) error {
	id := zmq4.SocketIdentity(rand.Text())
	max := d.options.MaxMessage
	iopub, err := d.dial(ctx, stream.IOPub.String(), d.IOPubPort, zmq4.Sub, nil, max)
	if err != nil {
		return err
	}
	cs.channels[stream.IOPub] = iopub
	if err := iopub.send([][]byte{{1}}); err != nil { // ZMTP 3.0: 1 and a prefix subscribes
		return err
	}
	for _, to := range []struct {
		ch   stream.Channel
		port int
	}{{stream.Shell, d.ShellPort}, {stream.Control, d.ControlPort}, {stream.Stdin, d.StdinPort}} {
		c, err := d.dial(ctx, to.ch.String(), to.port, zmq4.Dealer, id, max)
		if err != nil {
			return err
		}
		cs.channels[to.ch] = c
	}
	return nil
}

// dialer connects to a kernel's sockets once they exist.
type dialer struct {
	Connection
	options Options
	watch   *fsnotify.Watcher // of the sockets' folder; nil for tcp, and where it cannot be watched
}

func newDialer(c Connection, o Options) *dialer {
	d := &dialer{Connection: c, options: o}
	if c.Transport == "ipc" {
		d.watch = watchFolder(filepath.Dir(c.IP), o.Logger)
	}
	return d
}

func watchFolder(dir string, log *slog.Logger) *fsnotify.Watcher {
	watch, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watch.Add(dir); err == nil {
			return watch
		}
		watch.Close()
	}
	log.Debug("the sockets' folder cannot be watched, looking again and again", "dir", dir, "error", err)
	return nil
}

func (d *dialer) close() {
	if d.watch != nil {
		d.watch.Close()
	}
}

// dial connects one channel. The error names it.
func (d *dialer) dial(ctx context.Context, name string, port int, typ zmq4.SocketType, id zmq4.SocketIdentity, max int64) (*channel, error) {
	conn, err := d.connect(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("channels: %s: %w", name, err)
	}
	c := &channel{name: name, guard: newGuard(conn, max, d.options.MaxText, d.options.WriteTimeout)}
	if c.zmtp, err = d.handshake(ctx, c.guard, typ, id); err != nil {
		conn.Close()
		return nil, fmt.Errorf("channels: %s: handshake: %w", name, err)
	}
	return c, nil
}

// handshake makes conn a ZMTP connection, which neither ctx nor a deadline could stop in zmq4 itself.
func (d *dialer) handshake(ctx context.Context, g *guard, typ zmq4.SocketType, id zmq4.SocketIdentity) (*zmq4.Conn, error) {
	if err := g.SetDeadline(time.Now().Add(d.options.HandshakeTimeout)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = g.SetDeadline(time.Unix(1, 0)) })
	zmtp, err := zmq4.Open(g, null.Security(), typ, id, false, nil)
	switch {
	case !stop():
		return nil, context.Cause(ctx)
	case g.in.err != nil:
		return nil, g.in.err
	case err != nil:
		return nil, err
	}
	return zmtp, g.SetDeadline(time.Time{})
}

// connect waits until somebody listens on port and returns the connection.
func (d *dialer) connect(ctx context.Context, port int) (net.Conn, error) {
	network, address := d.address(port)
	var nd net.Dialer
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		conn, err := nd.DialContext(ctx, network, address)
		if err == nil && conn.LocalAddr().String() == conn.RemoteAddr().String() && network == "tcp" {
			conn.Close() // TCP connects a port to itself, given the chance
			err = syscall.ECONNREFUSED
		}
		if err == nil {
			return conn, nil
		}
		if err := d.wait(ctx, err, backoff); err != nil {
			return nil, err
		}
	}
}

// wait waits until a connection that failed for cause may succeed. A missing socket announces itself; nothing tells
// when a socket that exists begins to listen.
func (d *dialer) wait(ctx context.Context, cause error, backoff time.Duration) error {
	var events chan fsnotify.Event
	var failures chan error
	var timer <-chan time.Time
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(cause, fs.ErrNotExist) && d.watch != nil:
		events, failures = d.watch.Events, d.watch.Errors
	case errors.Is(cause, fs.ErrNotExist), errors.Is(cause, syscall.ECONNREFUSED), errors.Is(cause, syscall.EAGAIN):
		timer = time.After(backoff)
	default:
		return cause
	}
	select {
	case <-events:
	case <-failures: //nolint:errcheck // some event was lost: look
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
