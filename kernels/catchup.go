package kernels

import (
	"time"

	"cellblock/kernels/stream"
)

// catchUp is what a Client that goes on where an earlier one stopped has still to read. Guarded by Client.mu.
type catchUp struct {
	// last is the last number that the shim had when the first connection was made, after the one before what it sends.
	last, after uint64
	done        chan struct{} // closed when that has been read
	over        bool
}

// CaughtUp is closed when everything was routed that the shim had when Connect met it. An adopted execution that is still
// open by then runs, or its end was lost.
func (c *Client) CaughtUp() <-chan struct{} { return c.behind.done }

// met notes how far the shim is. c.mu is held.
func (c *Client) met(w stream.Welcome) {
	if c.behind.last == 0 && !c.behind.over {
		c.behind.last, c.behind.after = max(w.Next, 1)-1, w.After
		c.progress()
	}
}

// progress notes that more was routed. c.mu is held.
func (c *Client) progress() {
	if !c.behind.over && max(c.seq.received, c.behind.after) >= c.behind.last {
		c.behind.over = true
		close(c.behind.done)
	}
}

// A shim ends its kernel when it has heard from no server for a while: its Welcome says how long. This client lets it hear
// something three times as often.
const keepAliveShare = 3

// keepAlive says something to a shim that would otherwise take silence for absence, as long as l is the connection.
func (c *Client) keepAlive(l *link) {
	every := time.Duration(l.welcome.PatienceMS) * time.Millisecond / keepAliveShare
	if every <= 0 {
		return
	}
	c.wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.repeatAck(l)
			case <-l.gone:
				return
			case <-c.ctx.Done():
				return
			}
		}
	})
}

// repeatAck acknowledges again what was acknowledged before.
func (c *Client) repeatAck(l *link) {
	c.mu.Lock()
	acked := c.seq.acked
	c.mu.Unlock()
	if err := l.write(func(w *stream.Writer) error { return w.WriteAck(acked) }); err != nil {
		l.close()
	}
}
