//go:build linux

package shim

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"cellblock/kernels/stream"
)

const (
	// helloTimeout is how long a connection may take to send Hello.
	helloTimeout = 5 * time.Second
	// maxHandshakes bounds connections that have not sent Hello yet.
	maxHandshakes = 8
	// farewell is how long the server has to fetch the last frames once the shim has been shut down, and lastAck how long
	// it then has to acknowledge them: one that holds some back has got them all the same.
	farewell = 2 * time.Second
	lastAck  = 250 * time.Millisecond
	// maxServerFrame bounds a frame from the server, in bytes.
	maxServerFrame = maxQueued + stream.FrameOverhead
	// acceptPause is the pause after an Accept that failed for want of file descriptors or memory.
	acceptPause = 100 * time.Millisecond
)

// server accepts connections. One at a time is served: the newest that has sent a valid Hello.
type server struct {
	s       *Shim
	ln      net.Listener
	closing chan struct{}
	slots   chan struct{} // one for each handshake
	wg      sync.WaitGroup

	mu      sync.Mutex
	conns   map[*conn]bool
	current *conn // has sent its Hello
}

// serve starts to accept.
func serve(s *Shim, ln net.Listener) *server {
	v := &server{s: s, ln: ln, closing: make(chan struct{}), slots: make(chan struct{}, maxHandshakes), conns: make(map[*conn]bool)}
	v.wg.Go(v.accept)
	return v
}

func (v *server) accept() {
	for {
		c, err := v.ln.Accept()
		switch {
		case err == nil:
			v.admit(c)
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, io.EOF):
			v.s.log.Warn("stdin has ended: no server can attach any more")
			return
		default:
			v.s.log.Warn("accepting a connection", "error", err)
			if ends(v.closing, acceptPause) {
				return
			}
		}
	}
}

// admit starts to serve c in a goroutine of its own.
func (v *server) admit(nc net.Conn) {
	if v.s.config.PeerOutside {
		if err := checkPeer(nc); err != nil {
			v.s.log.Warn("a connection was refused", "error", err)
			nc.Close()
			return
		}
	}
	select {
	case v.slots <- struct{}{}:
	default:
		nc.Close() // too many that say nothing
		return
	}
	c := newConn(v.s, nc)
	v.mu.Lock()
	v.conns[c] = true
	v.mu.Unlock()
	v.wg.Go(func() { v.serve(c) })
}

func (v *server) serve(c *conn) {
	hello, err := c.handshake()
	<-v.slots
	if err == nil {
		v.s.vigil.heard()
		v.replace(c)
		err = c.serve(hello)
	}
	c.close()
	v.mu.Lock()
	delete(v.conns, c)
	if v.current == c {
		v.current = nil
	}
	v.mu.Unlock()
	v.s.log.Debug("a connection has ended", "error", err)
}

// replace makes c the one that is served.
func (v *server) replace(c *conn) {
	v.mu.Lock()
	old := v.current
	v.current = c
	v.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// close lets the present connection fetch what is left, and ends all.
func (v *server) close() {
	close(v.closing)
	v.mu.Lock()
	c := v.current
	v.mu.Unlock()
	if c != nil {
		c.finish(farewell, lastAck)
	}
	v.ln.Close()
	v.mu.Lock()
	for c := range v.conns {
		c.close()
	}
	v.mu.Unlock()
	v.wg.Wait()
}
