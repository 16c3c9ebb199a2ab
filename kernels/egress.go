package kernels

import (
	"context"
	"fmt"
	"net"

	"cellblock/kernels/stream"
)

// ServeTunnel serves a connection that a program in the sandbox made to a port of its loopback, where Spec.Egress has the shim
// listen. It closes the connection, and returns soon after ctx has ended.
type ServeTunnel func(ctx context.Context, conn net.Conn, port int)

// egressState is who serves connections that lead out. Guarded by Client.mu.
type egressState struct {
	serve ServeTunnel
	// running are connections that are being served or refused.
	running int
}

// ServeEgress has serve called with each connection that leads out of the sandbox, in a goroutine of its own, from now on; nil
// refuses them, as does a Client of which this was never asked. They end with the connection to the shim, and with the Client.
func (c *Client) ServeEgress(serve ServeTunnel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.egress.serve = serve
}

// tunnelOpened starts to serve a connection. One that has ended may still be being served for a moment, so that there may be
// more than tunnels: those are refused. A shim that does not even wait until it is told so breaks the rules.
func (c *Client) tunnelOpened(t *stream.Tunnel) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	serve := c.egress.serve
	switch {
	case c.err != nil:
		return c.err
	case c.egress.running >= 2*stream.MaxTunnels:
		return fmt.Errorf("%w: tunnels are opened faster than they can be refused", stream.ErrMalformed)
	case serve == nil || c.egress.running >= stream.MaxTunnels:
		serve = func(context.Context, net.Conn, int) { t.Reset() }
	}
	c.egress.running++
	c.wg.Go(func() {
		defer c.tunnelServed()
		defer t.Close()
		// What the Client's end cuts off is given up before whoever serves it can close it: the program must not take that for
		// the end of what it was reading.
		ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
		defer cancel()
		defer context.AfterFunc(c.ctx, func() { t.Reset(); cancel() })()
		serve(ctx, t, t.Port())
	})
	return nil
}

func (c *Client) tunnelServed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.egress.running--
}
