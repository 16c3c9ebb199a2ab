package kernels_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"

	"cellblock/kernels/kernelstest"
)

// swallower dials connections that take what matches without passing it on, and break then: once.
type swallower struct {
	*kernelstest.Kernel
	match string
	done  atomic.Bool
}

func (s *swallower) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := s.Kernel.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &swallowingConn{Conn: conn, s: s}, nil
}

type swallowingConn struct {
	net.Conn
	s      *swallower
	broken bool
}

// Write swallows from the first write on that matches. The message's frame comes in parts; what matters of it is lost.
func (c *swallowingConn) Write(p []byte) (int, error) {
	if !c.broken && bytes.Contains(p, []byte(c.s.match)) && c.s.done.CompareAndSwap(false, true) {
		c.broken = true
		_ = c.Conn.Close()
	}
	if c.broken {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
