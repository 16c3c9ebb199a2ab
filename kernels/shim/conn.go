//go:build linux

package shim

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

const (
	// maxRequests bounds the requests of one connection that are being served.
	maxRequests = 64
	// writeBuffer gathers small frames into one write.
	writeBuffer = 16 << 10
)

// conn is one connection of a server.
type conn struct {
	s    *Shim
	nc   net.Conn
	r    *stream.Reader
	wg   sync.WaitGroup
	once sync.Once
	done chan struct{} // closed by close

	requests chan struct{} // one for each that is being served

	mu     sync.Mutex // guards writing
	buf    *bufio.Writer
	w      *stream.Writer
	cursor *cursor // nil before Hello

	tunnels *stream.Tunnels // nil where nothing leads out, or the server knows of none; only serve's goroutine sets and uses it
}

func newConn(s *Shim, nc net.Conn) *conn {
	buf := bufio.NewWriterSize(nc, writeBuffer)
	return &conn{
		s: s, nc: nc, r: stream.NewReader(nc, maxServerFrame), done: make(chan struct{}),
		requests: make(chan struct{}, maxRequests), buf: buf, w: stream.NewWriter(buf),
	}
}

// handshake reads Hello, at most for helloTimeout.
func (c *conn) handshake() (stream.Hello, error) {
	var hello stream.Hello
	if err := c.nc.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return hello, err
	}
	f, err := c.r.ReadFrame()
	if err != nil {
		return hello, err
	}
	if f.Type != stream.FrameHello {
		return hello, fmt.Errorf("%w: frame of type %d in place of hello", stream.ErrMalformed, f.Type)
	}
	if err := stream.DecodeJSON(f.Payload, &hello); err != nil {
		return hello, err
	}
	if hello.Version != stream.Version {
		return hello, c.refuse(fmt.Errorf("version %d of the stream, this shim speaks %d", hello.Version, stream.Version))
	}
	return hello, c.nc.SetReadDeadline(time.Time{})
}

// refuse answers Hello with an error and returns it.
func (c *conn) refuse(err error) error {
	_ = c.nc.SetWriteDeadline(time.Now().Add(helloTimeout))
	_ = c.write(func() error { return c.w.WriteJSON(stream.FrameWelcome, c.s.welcome(0, 0, err)) })
	return err
}

// welcome describes the shim.
func (s *Shim) welcome(after, next uint64, err error) stream.Welcome {
	w := stream.Welcome{
		Version: stream.Version, KernelID: s.config.KernelID, After: after, Next: next, PatienceMS: s.config.PatienceMS,
	}
	if err != nil {
		w.Error = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Incarnation = s.incarnation
	w.Alive = s.kernel != nil && s.kernel.alive()
	if s.asked.msgID != "" {
		w.Request, w.RequestMS = s.asked.msgID, time.Since(s.asked.came).Milliseconds()
	}
	return w
}

// asking is the last execute_request. A server that comes back cannot tell by its own clock how long ago it came.
type asking struct {
	msgID string
	came  time.Time
}

// note remembers a message if it is an execute_request, and with a cell's forgets what the kernel's process has said before it. A
// silent one may come while a cell runs, to find out what was lost.
func (s *Shim) note(m stream.Message) {
	if m.Channel != stream.Shell {
		return
	}
	id, ok := executeRequest(m.Parts)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = asking{strings.Clone(id), time.Now()}
	if _, cell := executionAsked(m.Parts); cell && s.kernel != nil {
		s.kernel.console.forget()
	}
}

// executeRequest returns the msg_id of a message on shell, if that is an execute_request.
func executeRequest(parts [][]byte) (id string, ok bool) {
	if len(parts) == 0 {
		return "", false
	}
	h, err := wire.ParseHeader(parts[0])
	return h.MsgID, err == nil && h.MsgType == "execute_request" && len(h.MsgID) <= maxParent
}

// serve answers hello and then runs the connection until one side ends it.
func (c *conn) serve(hello stream.Hello) error {
	cursor, next, err := c.s.journal.follow(hello.After)
	if err != nil {
		return c.refuse(err)
	}
	after := cursor.next - 1 // before it is read
	c.mu.Lock()
	c.cursor = cursor
	c.mu.Unlock()
	select {
	case <-c.done: // close may have come before the cursor, and not closed it
		return net.ErrClosed
	default:
	}
	if err := c.write(func() error { return c.w.WriteJSON(stream.FrameWelcome, c.s.welcome(after, next, nil)) }); err != nil {
		return err
	}
	c.wg.Go(func() {
		defer c.close()
		_ = c.replay(cursor)
	})
	if hello.Tunnels && c.s.egress != nil {
		c.tunnels = stream.NewTunnels(c.writeTunnel, nil)
		defer c.s.egress.use(c.tunnels)()
	}
	err = c.read()
	c.close()
	c.wg.Wait()
	return err
}

// replay writes the journal as it grows, gathering what is there already.
func (c *conn) replay(cursor *cursor) error {
	for {
		e, more, ok := cursor.read()
		if !ok {
			return nil
		}
		c.mu.Lock()
		err := c.writeEntry(e)
		if err == nil && !more {
			err = c.buf.Flush()
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func (c *conn) writeEntry(e entry) error {
	if e.event != nil {
		return c.w.WriteEvent(e.seq, *e.event)
	}
	return c.w.WriteMessage(stream.FrameMessage, e.msg)
}

// write runs f, which writes a frame, and sends it.
func (c *conn) write(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := f(); err != nil {
		return err
	}
	return c.buf.Flush()
}

func (c *conn) writeTunnel(f func(*stream.Writer) error) error {
	return c.write(func() error { return f(c.w) })
}

// read serves what the server sends.
func (c *conn) read() error {
	for {
		f, err := c.r.ReadFrame()
		if err != nil {
			return err
		}
		if err := c.frame(f); err != nil {
			return err
		}
	}
}

func (c *conn) frame(f stream.Frame) error {
	c.s.vigil.heard()
	switch f.Type {
	case stream.FrameSend:
		m, err := stream.DecodeMessage(f.Payload)
		if err != nil {
			return err
		}
		if m.Channel == stream.IOPub {
			return fmt.Errorf("%w: message for iopub", stream.ErrMalformed)
		}
		c.s.note(m)
		c.s.outbox.put(m.Channel, m.Parts)
		c.s.trimmer.passed(int64(len(f.Payload)))
		return nil
	case stream.FrameAck:
		seq, err := stream.DecodeAck(f.Payload)
		if err != nil {
			return err
		}
		return c.s.acknowledge(seq)
	case stream.FrameRequest:
		return c.request(f.Payload)
	}
	if c.tunnels != nil && stream.IsTunnelFrame(f.Type) {
		return c.tunnels.Receive(f)
	}
	return fmt.Errorf("%w: frame of type %d", stream.ErrMalformed, f.Type)
}

// acknowledge makes room in the journal, and uses it.
func (s *Shim) acknowledge(seq uint64) error {
	freed, err := s.journal.ack(seq)
	if err == nil && freed > 0 {
		s.gate.relieve()
		s.trimmer.add(freed)
	}
	return err
}

// finish waits until everything is sent, at most for send, and then until it is acknowledged, at most for ack.
func (c *conn) finish(send, ack time.Duration) {
	c.mu.Lock()
	cursor := c.cursor
	c.mu.Unlock()
	if cursor == nil {
		return
	}
	limit := time.AfterFunc(send, c.close)
	cursor.sent()
	limit.Reset(ack)
	defer limit.Stop()
	cursor.drained()
}

// close ends the connection; its goroutines end by themselves.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		c.nc.Close() // first: a write that it ends may hold the lock
		c.mu.Lock()
		cursor := c.cursor
		c.mu.Unlock()
		if cursor != nil {
			cursor.close()
		}
	})
}
