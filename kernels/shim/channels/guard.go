package channels

import (
	"net"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
)

// small is the size up to which what zmq4 writes is gathered by copying, in bytes.
const small = 1 << 10

// guard stands between zmq4 and a connection to a kernel, which is not to be trusted. What is read goes through a
// parser. What is written for one message, two writes a frame by zmq4, leaves in one, with a deadline.
type guard struct {
	net.Conn
	in      *parser
	timeout time.Duration // of a write, once the handshake is done

	mu        sync.Mutex  // held while a message or a command is written
	gathering bool        // what is written is kept for flush
	bufs      net.Buffers // what is gathered, all but…
	tail      []byte      // …the small pieces at its end
	store     [4 * small]byte
}

func newGuard(conn net.Conn, max, large int64, timeout time.Duration) *guard {
	g := &guard{Conn: conn, timeout: timeout}
	g.in = newParser(conn, max, g.command)
	g.in.large = large
	return g
}

// Read reads what the parser lets pass.
func (g *guard) Read(b []byte) (int, error) { return g.in.Read(b) }

// Write gathers b while a message is sent, and until then, in the handshake, just writes it. What is gathered is not
// copied if it is large: it is part of a frame, which send's caller keeps.
func (g *guard) Write(b []byte) (int, error) {
	switch {
	case !g.gathering:
		return g.Conn.Write(b)
	case len(b) <= small:
		g.tail = append(g.tail, b...)
	default:
		g.endTail()
		g.bufs = append(g.bufs, b)
	}
	return len(b), nil
}

// send writes one message. After an error, part of it may have been written, and the connection is of no further use.
func (g *guard) send(zmtp *zmq4.Conn, frames [][]byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathering, g.tail = true, g.store[:0]
	err := zmtp.SendMsg(zmq4.NewMsgFrom(frames...))
	g.gathering = false
	if err != nil {
		return err
	}
	return g.flush()
}

func (g *guard) flush() error {
	g.endTail()
	if err := g.SetWriteDeadline(time.Now().Add(g.timeout)); err != nil {
		return err
	}
	gathered := g.bufs
	_, err := gathered.WriteTo(g.Conn)
	clear(g.bufs)
	g.bufs = g.bufs[:0]
	return err
}

// endTail moves the small pieces to what is gathered; the rest of their memory serves the next ones.
func (g *guard) endTail() {
	if len(g.tail) > 0 {
		g.bufs = append(g.bufs, g.tail)
		g.tail = g.tail[len(g.tail):]
	}
}

// command answers a PING (ZMTP 3.1, "Connection Heartbeating"): time to live in two bytes, then a context that PONG
// returns. Other commands mean nothing to us. It runs in Read, and zmq4 knows nothing of it.
func (g *guard) command(name string, body []byte) error {
	if name != zmq4.CmdPing || len(body) < 2 || len(body) > 2+16 {
		return nil
	}
	pong := append([]byte{flagCommand, 0, byte(len(zmq4.CmdPong))}, zmq4.CmdPong...)
	pong = append(pong, body[2:]...)
	pong[1] = byte(len(pong) - 2)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.SetWriteDeadline(time.Now().Add(g.timeout)); err != nil {
		return err
	}
	_, err := g.Conn.Write(pong)
	return err
}
