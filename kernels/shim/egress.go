//go:build linux

package shim

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"cellblock/kernels/stream"
)

// serverPatience is how long a connection waits for a server when none is there: one that restarts is back sooner.
const serverPatience = 10 * time.Second

// egress leads the connections to a port of the sandbox's loopback through the stream. It does not read them: what they
// ask for, and whether they get it, is the server's to say.
//
// No more are accepted than there are tunnels; what else comes waits in the socket's queue.
type egress struct {
	ln      net.Listener
	log     *slog.Logger
	slots   chan struct{} // one for each connection
	closing chan struct{}
	wg      sync.WaitGroup

	mu      sync.Mutex
	tunnels *stream.Tunnels // nil while no server is there
	up      chan struct{}   // closed while one is
	conns   map[net.Conn]bool
}

// openEgress begins to listen; nil where nothing leads out.
func openEgress(c *stream.Egress, log *slog.Logger) (*egress, error) {
	if c == nil {
		return nil, nil
	}
	ln, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Proxy)))
	if err != nil {
		return nil, err
	}
	e := &egress{
		ln: ln, log: log, slots: make(chan struct{}, stream.MaxTunnels), closing: make(chan struct{}),
		up: make(chan struct{}), conns: map[net.Conn]bool{},
	}
	e.wg.Go(e.accept)
	return e, nil
}

// egressEnv is what tells programs of the proxy. The address stands for SOCKS5, too, but few libraries that read these
// variables know that without another that may be missing, and all know HTTP.
func egressEnv(c stream.Egress) map[string]string {
	proxy := "http://127.0.0.1:" + strconv.Itoa(c.Proxy)
	here := "localhost,127.0.0.1,::1"
	return map[string]string{
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": here,
		"http_proxy": proxy, "https_proxy": proxy, "all_proxy": proxy, "no_proxy": here,
		"NODE_USE_ENV_PROXY": "1", // Node.js from 24 on
	}
}

func (e *egress) accept() {
	for {
		select {
		case e.slots <- struct{}{}:
		case <-e.closing:
			return
		}
		c, err := e.ln.Accept()
		switch {
		case err == nil:
			e.wg.Go(func() { e.serve(c.(*net.TCPConn)); <-e.slots })
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		<-e.slots
		e.log.Warn("accepting a connection that leads out", "error", err)
		if ends(e.closing, acceptPause) {
			return
		}
	}
}

// use makes a server's tunnels those that connections go through, until the function that it returns is called.
func (e *egress) use(t *stream.Tunnels) (drop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tunnels == nil {
		close(e.up)
	}
	e.tunnels = t
	return func() {
		t.Close()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.tunnels == t { // no newer server has come
			e.tunnels, e.up = nil, make(chan struct{})
		}
	}
}

// serve leads one connection out.
func (e *egress) serve(c *net.TCPConn) {
	if !e.hold(c) {
		c.Close()
		return
	}
	defer e.letGo(c)
	t, err := e.open(e.ln.Addr().(*net.TCPAddr).Port)
	if err != nil {
		cut(c)
		return
	}
	defer t.Close()
	var up sync.WaitGroup
	up.Go(func() { upward(t, c) })
	downward(c, t)
	up.Wait()
}

// open opens a tunnel, once there is a server.
func (e *egress) open(port int) (*stream.Tunnel, error) {
	e.mu.Lock()
	up := e.up
	e.mu.Unlock()
	if !ends(up, serverPatience) {
		return nil, net.ErrClosed
	}
	e.mu.Lock()
	t := e.tunnels
	e.mu.Unlock()
	if t == nil {
		return nil, net.ErrClosed
	}
	return t.Open(port)
}

// through is how much of a connection is read at once. The types hide what would make io.Copy take more.
func through(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, stream.MaxTunnelData))
	return err
}

// upward leads what a program sends to the server.
func upward(t *stream.Tunnel, c *net.TCPConn) {
	if through(t, c) != nil {
		t.Reset()
		return
	}
	_ = t.CloseWrite() // when that fails the tunnel has ended
}

// downward leads what the server sends to the program, and closes its connection when the tunnel is over.
func downward(c *net.TCPConn, t *stream.Tunnel) {
	if through(c, t) != nil {
		t.Reset()
		cut(c)
		return
	}
	_ = c.CloseWrite()
	t.Wait()
	c.Close()
}

// cut closes a connection so that the program does not take it for the end of what it was reading.
func cut(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}

func (e *egress) hold(c net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns == nil {
		return false
	}
	e.conns[c] = true
	return true
}

func (e *egress) letGo(c net.Conn) {
	c.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
}

// close ends all connections. The server has been left before.
func (e *egress) close() {
	if e == nil {
		return
	}
	close(e.closing)
	e.ln.Close()
	e.mu.Lock()
	if e.tunnels == nil {
		close(e.up) // nobody waits any longer
	}
	for c := range e.conns {
		c.Close()
	}
	e.conns = nil
	e.mu.Unlock()
	e.wg.Wait()
}
