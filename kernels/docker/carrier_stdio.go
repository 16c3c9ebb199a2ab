package docker

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"cellblock/kernels/stream"
)

// stdioCarrier is the container's stdin and stdout, to which the engine attaches us. Its stderr comes along.
type stdioCarrier struct {
	api       *client.Client
	container string
	key       string
	first     net.Conn // from prepare to await
	stderr    tail
}

const (
	// maxWelcome is far more than a shim's first frame needs.
	maxWelcome = 64 << 10
	// goodByeTimeout bounds the end of the first connection.
	goodByeTimeout = 3 * time.Second
)

// dial attaches. The engine copies the output to everybody who is attached and mixes everybody's input; the stream's
// attach format tells the connections apart.
func (c *stdioCarrier) dial(ctx context.Context) (net.Conn, error) {
	attached, err := c.attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("attaching to the container: %w", err)
	}
	conn, err := stream.AttachClient(&demux{Conn: attached.Conn, r: attached.Reader, stderr: &c.stderr}, c.key)
	if err != nil {
		attached.Close()
		return nil, err
	}
	return conn, nil
}

// attach obeys ctx, which the client's attaching does not while the engine is silent. A late answer is thrown away.
func (c *stdioCarrier) attach(ctx context.Context) (types.HijackedResponse, error) {
	type answer struct {
		attached types.HijackedResponse
		err      error
	}
	answers := make(chan answer)
	go func() {
		attached, err := c.api.ContainerAttach(ctx, c.container, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
		select {
		case answers <- answer{attached, err}:
		case <-ctx.Done():
			if err == nil {
				attached.Close()
			}
		}
	}()
	select {
	case a := <-answers:
		if connectionLost(a.err) {
			a.err = unreachable(" at "+c.api.DaemonHost(), a.err)
		}
		return a.attached, a.err
	case <-ctx.Done():
		return types.HijackedResponse{}, ctx.Err()
	}
}

// prepare attaches before the start, so that nothing of the shim's stderr is missed: the engine keeps no log of it.
func (c *stdioCarrier) prepare(ctx context.Context) (err error) {
	c.first, err = c.dial(ctx)
	return err
}

// await greets the shim and waits for its answer.
func (c *stdioCarrier) await(ctx context.Context) error {
	conn := c.first
	c.first = nil
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := stream.NewWriter(conn).WriteJSON(stream.FrameHello, stream.Hello{Version: stream.Version}); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	frame, err := stream.NewReader(conn, maxWelcome).ReadFrame()
	switch {
	case err != nil:
		return errors.Join(ctx.Err(), fmt.Errorf("the shim does not answer: %w", err))
	case frame.Type != stream.FrameWelcome:
		return fmt.Errorf("%w: frame %d instead of a welcome", stream.ErrMalformed, frame.Type)
	}
	_ = stream.HangUp(conn, goodByeTimeout) // or its end would come between the next connection's pieces
	return nil
}

// endsWithShim: the engine has the other end.
func (c *stdioCarrier) endsWithShim() bool { return false }

func (c *stdioCarrier) log() string { return c.stderr.String() }

func (c *stdioCarrier) remove() error {
	if c.first != nil {
		return c.first.Close()
	}
	return nil
}

var _ carrier = (*stdioCarrier)(nil)

const (
	// demuxHead is the engine's header before each piece of output: stream, three zeros, uint32 length.
	demuxHead = 8
	// maxPiece is far more than an engine puts into one piece.
	maxPiece = 64 << 20
)

var errNotMultiplexed = errors.New("the engine's attached stream is malformed")

// demux reads the container's stdout out of what the engine multiplexes, and sets its stderr aside. The format is that
// of stdcopy; taking it apart within Read keeps the connection's deadlines, and needs no goroutine.
type demux struct {
	net.Conn
	r      *bufio.Reader
	stderr io.Writer
	head   [demuxHead]byte
	filled int // of head
	left   int // of the present piece of stdout
	aside  int // of the present piece of stderr
}

func (d *demux) Read(p []byte) (int, error) {
	for d.left == 0 {
		if err := d.next(); err != nil {
			return 0, err
		}
	}
	n, err := d.r.Read(p[:min(len(p), d.left)])
	d.left -= n
	return n, err
}

// next finishes a piece of stderr or reads the next header. A deadline may end it anywhere, so it keeps where it is.
func (d *demux) next() error {
	if d.aside > 0 {
		n, err := io.CopyN(d.stderr, d.r, int64(d.aside))
		d.aside -= int(n)
		return err
	}
	n, err := io.ReadFull(d.r, d.head[d.filled:])
	if d.filled += n; err != nil {
		return err
	}
	d.filled = 0
	size := binary.BigEndian.Uint32(d.head[4:])
	if size > maxPiece {
		return fmt.Errorf("%w: piece of %d bytes", errNotMultiplexed, size)
	}
	switch stdcopy.StdType(d.head[0]) {
	case stdcopy.Stdin, stdcopy.Stdout:
		d.left = int(size)
	case stdcopy.Stderr:
		d.aside = int(size)
	case stdcopy.Systemerr:
		text := make([]byte, min(size, 1024))
		_, err := io.ReadFull(d.r, text)
		return errors.Join(fmt.Errorf("the engine: %s", text), err)
	default:
		return fmt.Errorf("%w: stream %d", errNotMultiplexed, d.head[0])
	}
	return nil
}

// tail keeps the end of what is written to it. Its methods may be called concurrently.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if excess := len(t.buf) - logTail; excess > 0 {
		t.buf = append(t.buf[:0], t.buf[excess:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
