package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Tunnel is one connection through the stream. Like a TCP connection it can be closed in one direction alone (CloseWrite), and
// what was written before it is closed still arrives. Its methods may be called concurrently.
type Tunnel struct {
	all  *Tunnels
	id   uint32
	port int

	writing sync.Mutex // held by who sends data, so that no end overtakes it

	changed sync.Cond // its lock, all.mu, guards what follows
	in      bytes.Buffer
	owed    int  // bytes that were read, and that the other side was given no new credit for
	credit  int  // bytes that may be sent
	ended   bool // the other side sends no more
	ending  bool // this side sends no more
	reset   bool // nothing goes either way any more
	closed  bool // by Close here
	reads   deadline
	writes  deadline
}

// deadline is when an operation gives up.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// Port is the port of the sandbox's loopback that was connected to.
func (c *Tunnel) Port() int { return c.port }

// Read reads what has come. It returns io.EOF behind the last that the other side sent, and ECONNRESET when that has given the
// tunnel up before its end, or its connection has ended.
func (c *Tunnel) Read(p []byte) (int, error) {
	n, grant, err := c.take(p)
	if grant > 0 {
		var credit [4]byte
		binary.BigEndian.PutUint32(credit[:], uint32(grant))
		_ = c.send(FrameTunnelCredit, credit[:]) // whoever reads on notices
	}
	return n, err
}

// take waits for something to read, and returns how much credit is to be given for what was.
func (c *Tunnel) take(p []byte) (n, grant int, err error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, 0, net.ErrClosed
		case c.reads.over():
			return 0, 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, 0, nil
		case c.in.Len() > 0:
			n, _ = c.in.Read(p)
			return n, c.settle(n), nil
		case c.ended:
			return 0, 0, io.EOF
		case c.reset:
			return 0, 0, syscall.ECONNRESET
		}
		c.changed.Wait()
	}
}

// settle notes that n bytes were read. all.mu is held.
func (c *Tunnel) settle(n int) (grant int) {
	if c.in.Len() == 0 {
		c.in = bytes.Buffer{} // a tunnel at rest holds nothing
	}
	if c.owed += n; c.owed < TunnelWindow/4 || c.ended || c.reset {
		return 0
	}
	grant, c.owed = c.owed, 0
	return grant
}

// Write sends p, as fast as the other side reads.
func (c *Tunnel) Write(p []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for len(p) > 0 {
		n, err := c.spend(len(p))
		if err == nil {
			err = c.send(FrameTunnelData, p[:n])
		}
		if err != nil {
			return written, err
		}
		written, p = written+n, p[n:]
	}
	return written, nil
}

// spend waits for credit and takes some of it, for at most n bytes.
func (c *Tunnel) spend(n int) (int, error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for {
		switch {
		case c.closed || c.ending:
			return 0, net.ErrClosed
		case c.writes.over():
			return 0, os.ErrDeadlineExceeded
		case c.reset:
			return 0, syscall.EPIPE
		case c.credit > 0:
			n = min(n, c.credit, MaxTunnelData)
			c.credit -= n
			return n, nil
		}
		c.changed.Wait()
	}
}

func (c *Tunnel) send(t FrameType, rest []byte) error {
	return c.all.write(func(w *Writer) error { return w.writeTunnel(t, c.id, rest) })
}

// CloseWrite says that nothing more will be written. It waits for a Write that is under way.
func (c *Tunnel) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.all.mu.Lock()
	over := c.ending || c.reset
	c.all.mu.Unlock()
	if over {
		return nil
	}
	return c.leave(FrameTunnelEnd, func() { c.ending = true; c.forget() })
}

// leave sends one of the two frames that end a direction, and makes the change that goes with it. The side that opens counts a
// tunnel until the other has been told, which counts it until it decides to tell: so that never has too many.
func (c *Tunnel) leave(t FrameType, change func()) error {
	change = c.locked(change)
	if c.all.opened == nil {
		defer change()
	} else {
		change()
	}
	return c.send(t, nil)
}

func (c *Tunnel) locked(f func()) func() {
	return func() {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		f()
	}
}

// Close ends the tunnel. What was written arrives; what comes is not read any more.
func (c *Tunnel) Close() error {
	c.all.mu.Lock()
	first := !c.closed
	c.closed = true
	c.in = bytes.Buffer{}
	c.reads.stop()
	c.writes.stop()
	c.changed.Broadcast() // a Write that waits for credit ends, and lets CloseWrite through
	c.all.mu.Unlock()
	if !first {
		return nil
	}
	err := c.CloseWrite()
	return errors.Join(err, c.giveUp())
}

// Reset ends the tunnel at once, with an error for the other side.
func (c *Tunnel) Reset() { _ = c.giveUp() }

// giveUp tells the other side that nothing is read here any more, unless that knows.
func (c *Tunnel) giveUp() error {
	c.all.mu.Lock()
	over := c.reset || c.all.open[c.id] != c
	c.all.mu.Unlock()
	if over {
		return nil
	}
	return c.leave(FrameTunnelReset, c.abort)
}

// Wait waits until nothing goes either way any more, but for what is still to be read.
func (c *Tunnel) Wait() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for !c.over() {
		c.changed.Wait()
	}
}

// over tells whether nothing goes either way any more. all.mu is held.
func (c *Tunnel) over() bool { return c.reset || c.ended && c.ending }

// receive takes a frame. all.mu is held.
func (c *Tunnel) receive(t FrameType, rest []byte) error {
	switch t {
	case FrameTunnelData:
		return c.receiveData(rest)
	case FrameTunnelCredit:
		return c.receiveCredit(rest)
	}
	if len(rest) != 0 {
		return fmt.Errorf("an end of %d bytes", len(rest))
	}
	if t == FrameTunnelReset {
		c.abort()
		return nil
	}
	c.ended = true
	c.forget()
	return nil
}

func (c *Tunnel) receiveData(data []byte) error {
	switch {
	case len(data) == 0 || len(data) > MaxTunnelData:
		return fmt.Errorf("data of %d bytes", len(data))
	case c.ended:
		return errors.New("data behind the end")
	case c.in.Len()+c.owed+len(data) > TunnelWindow:
		return errors.New("more data than there is credit for")
	case c.closed: // nobody reads; what was on its way is let go
		c.owed += len(data)
		return nil
	}
	c.in.Write(data)
	return nil
}

func (c *Tunnel) receiveCredit(rest []byte) error {
	if len(rest) != 4 {
		return fmt.Errorf("credit of %d bytes", len(rest))
	}
	n := binary.BigEndian.Uint32(rest)
	if n > TunnelWindow || c.credit+int(n) > TunnelWindow {
		return errors.New("more credit than the window")
	}
	c.credit += int(n)
	return nil
}

// abort ends the tunnel on this side. What came before an end can still be read. all.mu is held.
func (c *Tunnel) abort() {
	c.reset = true
	if !c.ended {
		c.in = bytes.Buffer{}
	}
	c.forget()
	c.changed.Broadcast()
}

// forget takes the tunnel out of the open ones if it is over. all.mu is held.
func (c *Tunnel) forget() {
	if c.over() && c.all.open[c.id] == c {
		delete(c.all.open, c.id)
		c.changed.Broadcast()
	}
}

// SetDeadline is net.Conn's.
func (c *Tunnel) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline is net.Conn's.
func (c *Tunnel) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.reads, t) }

// SetWriteDeadline is net.Conn's.
func (c *Tunnel) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writes, t) }

func (c *Tunnel) setDeadline(d *deadline, t time.Time) error {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	d.stop()
	if d.at = t; !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), c.locked(c.changed.Broadcast))
	}
	c.changed.Broadcast()
	return nil
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// LocalAddr and RemoteAddr name the port in the sandbox: the other end is a process there that has no address of its own here.
func (c *Tunnel) LocalAddr() net.Addr { return tunnelAddr(c.port) }

// RemoteAddr is LocalAddr.
func (c *Tunnel) RemoteAddr() net.Addr { return tunnelAddr(c.port) }

type tunnelAddr int

func (tunnelAddr) Network() string  { return "tunnel" }
func (a tunnelAddr) String() string { return "sandbox:" + strconv.Itoa(int(a)) }

var _ net.Conn = (*Tunnel)(nil)
