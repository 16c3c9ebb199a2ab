package stream

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// AttachServer is the shim's end of a pair of pipes that servers attach to, one after the other: a net.Listener whose
// connections begin where a client wrote its opening. A new connection ends the one before, however far that got with
// its reading and writing.
type AttachServer struct {
	in  io.Reader
	out io.Writer
	key []byte

	conns chan *attachConn
	done  chan struct{}
	once  sync.Once

	writing sync.Mutex // held during a write to out
	mu      sync.Mutex // guards what follows, and every connection's state
	current *attachConn
	err     error // why in ended
}

// NewAttachServer starts to watch in. It needs write deadlines of out to take the pipes from a connection whose client
// does not read; os.File has them for pipes in non-blocking mode. When in ends, Accept returns that error; until then
// its reader goroutine stays, also after Close.
func NewAttachServer(in io.Reader, out io.Writer, key string) (*AttachServer, error) {
	k, err := ParseAttachKey(key)
	if err != nil {
		return nil, err
	}
	s := &AttachServer{in: in, out: out, key: k, conns: make(chan *attachConn), done: make(chan struct{})}
	go s.watch()
	return s, nil
}

// Accept waits for the next connection.
func (s *AttachServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, s.err
	}
}

// Close ends Accept and the present connection. It does not close the pipes.
func (s *AttachServer) Close() error {
	s.end(net.ErrClosed)
	return nil
}

// Addr returns a name.
func (s *AttachServer) Addr() net.Addr { return attachAddr{} }

func (s *AttachServer) end(err error) {
	s.once.Do(func() {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		s.replace(nil, err)
		close(s.done)
	})
}

// watch reads in until it ends.
func (s *AttachServer) watch() {
	w := watcher{finder: newFinder(s.key)}
	buf := make([]byte, maxChunk)
	for {
		n, err := s.in.Read(buf)
		for p := buf[:n]; len(p) > 0; {
			used, tag := w.take(p)
			s.feed(p[:used])
			if tag != nil && !s.open(*tag) {
				return
			}
			p = p[used:]
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

// watcher finds openings. It looks at the nonce's bytes too, because an opening can itself be cut short by the next.
type watcher struct {
	*finder
	tag  nonce
	want int // bytes of tag still to come
}

// take looks at p up to the end of the next opening, returns how much that was and the nonce if there was one.
func (w *watcher) take(p []byte) (int, *nonce) {
	for i, b := range p {
		complete := false
		if w.want > 0 {
			w.tag[nonceSize-w.want] = b
			w.want--
			complete = w.want == 0
		}
		if w.next(b) {
			w.want = nonceSize
		}
		if complete {
			tag := w.tag
			return i + 1, &tag
		}
	}
	return len(p), nil
}

// open makes the connection with this nonce the present one and hands it to Accept. It is false after the end.
func (s *AttachServer) open(tag nonce) bool {
	c := &attachConn{server: s, out: newChunker(s.out, s.key, tag)}
	c.in.tag = tag
	c.changed.L = &s.mu
	if !s.replace(c, ErrReplaced) {
		return false
	}
	select {
	case s.conns <- c:
		return true
	case <-s.done:
		return false
	}
}

// replace ends the present connection with err and puts c in its place.
func (s *AttachServer) replace(c *attachConn, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current
	s.current = c
	if old != nil {
		old.fail(err)
		// Its writer may be stuck because nobody reads. The next connection's first write lifts this.
		_ = setWriteDeadline(s.out, time.Unix(1, 0))
	}
	return c == nil || s.err == nil
}

// feed gives the present connection what was read, and waits while that holds enough.
func (s *AttachServer) feed(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.current
	if c == nil || c.err != nil {
		return
	}
	if err := c.in.feed(p); err != nil {
		c.fail(err)
		return
	}
	c.changed.Broadcast()
	for c.err == nil && c.in.out.Len() > attachReady {
		c.changed.Wait()
	}
}

// attachConn is one connection. The server's mu guards all but out, which writing guards.
type attachConn struct {
	server  *AttachServer
	in      unchunker
	err     error // no more will come in
	changed sync.Cond
	timer   *time.Timer
	late    bool // the read deadline is over
	out     *chunker
	opened  bool
}

// fail ends reading once what is there has been read. mu is held.
func (c *attachConn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.changed.Broadcast()
}

func (c *attachConn) Read(p []byte) (int, error) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	for c.in.out.Len() == 0 || c.late {
		switch {
		case c.late:
			return 0, os.ErrDeadlineExceeded
		case c.err != nil:
			return 0, c.err
		}
		c.changed.Wait()
	}
	n, err := c.in.out.Read(p)
	c.changed.Broadcast()
	return n, err
}

func (c *attachConn) Write(p []byte) (int, error) {
	c.server.writing.Lock()
	defer c.server.writing.Unlock()
	if err := c.begin(); err != nil {
		return 0, err
	}
	return c.out.Write(p)
}

// begin checks that the pipes are this connection's, and lifts the deadline that took them from the one before.
func (c *attachConn) begin() error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.server.current != c {
		return ErrReplaced
	}
	if !c.opened {
		c.opened = true
		_ = setWriteDeadline(c.server.out, time.Time{})
	}
	return nil
}

// Close tells the client and ends the connection; the pipes stay.
func (c *attachConn) Close() error {
	s := c.server
	s.mu.Lock()
	c.fail(net.ErrClosed)
	c.stopTimer()
	mine := s.current == c
	if mine && c.opened {
		_ = setWriteDeadline(s.out, time.Now().Add(endTimeout))
	}
	s.mu.Unlock()
	if !mine {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if c.begin() == nil {
		_ = setWriteDeadline(s.out, time.Now().Add(endTimeout))
		_ = c.out.write(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c {
		s.current = nil
	}
	return nil
}

func (c *attachConn) LocalAddr() net.Addr  { return attachAddr{} }
func (c *attachConn) RemoteAddr() net.Addr { return attachAddr{} }

// SetDeadline sets both deadlines.
func (c *attachConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *attachConn) SetReadDeadline(t time.Time) error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.stopTimer()
	c.late = false
	if t.IsZero() {
		return nil
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(t), func() {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		if c.timer == timer {
			c.late = true
			c.changed.Broadcast()
		}
	})
	c.timer = timer
	return nil
}

func (c *attachConn) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

func (c *attachConn) SetWriteDeadline(t time.Time) error {
	if err := c.begin(); err != nil {
		return err
	}
	return setWriteDeadline(c.server.out, t)
}

var (
	_ net.Listener = (*AttachServer)(nil)
	_ net.Conn     = (*attachConn)(nil)
)
