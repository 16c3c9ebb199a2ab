// Package pipes is a network of pipes, for tests: a server on it runs in a bubble of synctest, which one on sockets cannot.
package pipes

import (
	"net"
	"sync"
)

// Listener hands out one end of each pipe whose other end Dial has returned.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewListener returns one that is open.
func NewListener() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial returns the near end of a new pipe as soon as the far one has been accepted.
func (l *Listener) Dial() net.Conn {
	near, far := net.Pipe()
	l.conns <- far
	return near
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It may be called again.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

var _ net.Listener = (*Listener)(nil)
