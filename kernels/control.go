package kernels

import (
	"context"
	"errors"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
)

// requestState are the requests to the shim itself that wait for their replies. Guarded by Client.mu.
type requestState struct {
	last    uint64
	pending map[uint64]*request
}

type request struct {
	reply chan stream.Reply // takes one
	lost  chan struct{}     // closed when the connection it was written to broke
}

// lost tells all waiters that their replies, which no journal keeps, will not come. Client.mu is held.
func (s *requestState) lost() {
	for id, r := range s.pending {
		close(r.lost)
		delete(s.pending, id)
	}
}

// Interrupt interrupts what runs, as the kernelspec says. It returns when the shim has done so. The answer comes behind
// the outputs that are on their way: with a full queue that nobody reads it waits, though the interrupt has gone out.
func (c *Client) Interrupt(ctx context.Context) error {
	_, err := c.request(ctx, stream.OpInterrupt, 0, nil)
	return err
}

// KillChildren kills every process that the kernel's code started, and returns how many there were.
func (c *Client) KillChildren(ctx context.Context) (int, error) {
	r, err := c.request(ctx, stream.OpKillChildren, 0, nil)
	return r.Killed, err
}

// Ping returns when the shim has answered. What the kernel does is another question: see Ready.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.request(ctx, stream.OpPing, 0, nil)
	return err
}

// Stats returns a sample of what kernel and shim use.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	r, err := c.request(ctx, stream.OpStats, 0, nil)
	if err == nil && r.Stats == nil {
		err = fault.New(fault.Unavailable, "the kernel's shim sent no statistics")
	}
	if err != nil {
		return Stats{}, err
	}
	return *r.Stats, nil
}

// Restart ends the kernel process, after at most grace, and starts a new one in its place. What runs ends with
// StatusDied, its Death.Asked set; what is sent meanwhile waits for the new process. Call Ready again afterwards.
func (c *Client) Restart(ctx context.Context, grace time.Duration) error {
	c.mu.Lock()
	if c.kernel.restarting != 0 {
		c.mu.Unlock()
		return fault.New(fault.Conflict, "the kernel is being restarted already")
	}
	old := c.kernel.incarnation
	c.kernel.restarting = max(old, 1)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.kernel.restarting = 0
		close(c.kernel.changed) // lets those through who wait at the gate
		c.kernel.changed = make(chan struct{})
		c.mu.Unlock()
	}()
	// A reply that was lost needs no second restart when the new process is there.
	restarted := func() bool { return c.kernel.incarnation > old }
	if _, err := c.request(ctx, stream.OpRestart, grace, restarted); err != nil {
		return err
	}
	return c.awaitKernel(ctx, restarted)
}

// gate waits while the kernel is being restarted.
func (c *Client) gate(ctx context.Context) error {
	return c.awaitKernel(ctx, func() bool { return c.kernel.restarting == 0 })
}

// awaitKernel waits until ok, which is called with c.mu held, returns true.
func (c *Client) awaitKernel(ctx context.Context, ok func() bool) error {
	for {
		c.mu.Lock()
		met, changed, err := ok(), c.kernel.changed, c.err
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// request asks the shim for something, again on the next connection if this one breaks, unless settled, called with c.mu
// held, says that it came about.
func (c *Client) request(ctx context.Context, op stream.Op, grace time.Duration, settled func() bool) (stream.Reply, error) {
	for {
		r, err := c.tryRequest(ctx, op, grace)
		if !errors.Is(err, errReplyLost) {
			return r, err
		}
		if _, err := c.connected(ctx); err != nil {
			return stream.Reply{}, err
		}
		c.mu.Lock()
		done := settled != nil && settled()
		c.mu.Unlock()
		if done {
			return stream.Reply{}, nil
		}
	}
}

var errReplyLost = errors.New("the connection broke before the shim replied")

func (c *Client) tryRequest(ctx context.Context, op stream.Op, grace time.Duration) (stream.Reply, error) {
	r := &request{reply: make(chan stream.Reply, 1), lost: make(chan struct{})}
	id := c.expect(r)
	defer c.forget(id)
	frame := stream.Request{ID: id, Op: op, GraceMS: grace.Milliseconds()}
	_, err := c.write(ctx, func(w *stream.Writer) error { return w.WriteJSON(stream.FrameRequest, frame) })
	if err != nil {
		return stream.Reply{}, err
	}
	select {
	case reply := <-r.reply:
		if reply.Error != "" {
			return reply, fault.New(fault.Unavailable, "the kernel's shim could not %s: %s", opText(op), clip(reply.Error))
		}
		return reply, nil
	case <-r.lost:
		return stream.Reply{}, errReplyLost
	case <-c.done:
		return stream.Reply{}, c.Err()
	case <-ctx.Done():
		return stream.Reply{}, ctx.Err()
	}
}

func (c *Client) expect(r *request) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.last++
	c.requests.pending[c.requests.last] = r
	return c.requests.last
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests.pending, id)
}

// answer gives a reply of the shim to its request.
func (c *Client) answer(r stream.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.requests.pending[r.ID]; q != nil {
		delete(c.requests.pending, r.ID)
		q.reply <- r
		return
	}
	c.counters.Foreign++
}

func opText(op stream.Op) string {
	switch op {
	case stream.OpInterrupt:
		return "interrupt the kernel"
	case stream.OpKillChildren:
		return "kill the kernel's children"
	case stream.OpRestart:
		return "restart the kernel"
	case stream.OpStats:
		return "take statistics"
	}
	return "answer"
}
