package stream

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
)

// Tunnels are the connections that lead out of a sandbox through one connection of the stream, as either side has them. Each
// is a Tunnel, which is a net.Conn.
//
// No tunnel holds up the stream: what it receives is taken at once, because the other side sends no more than it was given
// credit for, and what it sends goes in small frames between which all others find their turn. So it takes no more memory
// than the windows of MaxTunnels tunnels, whatever the other side does.
type Tunnels struct {
	// write sends one frame; see NewTunnels.
	write func(func(*Writer) error) error
	// opened is given what the other side opens; nil where that may open nothing.
	opened func(*Tunnel) error

	mu     sync.Mutex // guards all Tunnels, too
	open   map[uint32]*Tunnel
	last   uint32 // number that was opened
	closed bool
}

// NewTunnels returns the tunnels of one connection. Write sends a frame and may be called concurrently. On the server's side
// opened is called with each tunnel that the shim opens, and must return at once; its error is Receive's. On the shim's side it
// is nil.
func NewTunnels(write func(func(*Writer) error) error, opened func(*Tunnel) error) *Tunnels {
	return &Tunnels{write: write, opened: opened, open: map[uint32]*Tunnel{}}
}

// Open opens a tunnel for a connection to a port. It fails with net.ErrClosed when the connection has ended, and with
// ErrTunnels when there are too many.
func (t *Tunnels) Open(port int) (*Tunnel, error) {
	t.mu.Lock()
	switch {
	case t.closed:
		t.mu.Unlock()
		return nil, net.ErrClosed
	case len(t.open) >= MaxTunnels:
		t.mu.Unlock()
		return nil, ErrTunnels
	}
	t.last++
	c := t.add(t.last, port)
	// The lock is not held while the frame is written. Its number may so come behind a later one; see receiveOpen.
	t.mu.Unlock()
	if err := t.write(func(w *Writer) error { return w.writeTunnel(FrameTunnelOpen, c.id, uint16Bytes(c.port)) }); err != nil {
		c.Reset()
		return nil, err
	}
	return c, nil
}

// ErrTunnels is that MaxTunnels are open.
var ErrTunnels = fmt.Errorf("stream: %d tunnels are open", MaxTunnels)

// add makes a tunnel. t.mu is held.
func (t *Tunnels) add(id uint32, port int) *Tunnel {
	c := &Tunnel{all: t, id: id, port: port, credit: TunnelWindow}
	c.changed.L = &t.mu
	t.open[id] = c
	return c
}

// IsTunnelFrame tells whether a frame is for Receive.
func IsTunnelFrame(t FrameType) bool { return t >= FrameTunnelOpen && t <= FrameTunnelReset }

// Receive takes a frame of a tunnel and never waits. The error is ErrMalformed: the other side breaks the rules.
func (t *Tunnels) Receive(f Frame) error {
	if len(f.Payload) < 4 {
		return fmt.Errorf("%w: tunnel frame of %d bytes", ErrMalformed, len(f.Payload))
	}
	id, rest := binary.BigEndian.Uint32(f.Payload), f.Payload[4:]
	if f.Type == FrameTunnelOpen {
		return t.receiveOpen(id, rest)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.open[id]
	if c == nil {
		return nil // it has ended here, which the other side did not know yet
	}
	if err := c.receive(f.Type, rest); err != nil {
		return fmt.Errorf("%w: tunnel %d: %w", ErrMalformed, id, err)
	}
	c.changed.Broadcast()
	return nil
}

// receiveOpen takes a new tunnel. A number that is open already is wrong. One that was is not noticed: nothing of it is left.
func (t *Tunnels) receiveOpen(id uint32, rest []byte) error {
	if t.opened == nil || len(rest) != 2 {
		return fmt.Errorf("%w: opening of tunnel %d", ErrMalformed, id)
	}
	t.mu.Lock()
	switch {
	case t.closed:
		t.mu.Unlock()
		return nil
	case t.open[id] != nil || len(t.open) >= MaxTunnels:
		t.mu.Unlock()
		return fmt.Errorf("%w: tunnel %d, with %d open", ErrMalformed, id, len(t.open))
	}
	c := t.add(id, int(binary.BigEndian.Uint16(rest)))
	t.mu.Unlock()
	return t.opened(c)
}

// Close ends all tunnels, because their connection has ended. What they had not read is lost.
func (t *Tunnels) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, c := range t.open {
		c.abort()
	}
}

// writeTunnel writes a frame of a tunnel.
func (w *Writer) writeTunnel(t FrameType, id uint32, rest []byte) error {
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], id)
	return w.writeFrame(t, head[:], rest)
}

func uint16Bytes(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
