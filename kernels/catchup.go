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

	// request is the last execute_request that the shim had, and came when that came; empty when the shim did not say.
	request string
	came    time.Time
}

// maxAge bounds what a shim may say of the time since a request came.
const maxAge = 10 * 365 * 24 * time.Hour

// Since tells how long ago the shim got an execute_request that an earlier Client has sent. Unlike the difference of two
// times of day it does not change when somebody sets the clock. It is false where the shim does not know: of other requests
// than the last, and of earlier versions.
func (c *Client) Since(msgID string) (age time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if msgID == "" || msgID != c.behind.request {
		return 0, false
	}
	return time.Since(c.behind.came), true
}

// CaughtUp is closed when everything was routed that the shim had when Connect met it. An adopted execution that is still
// open by then runs, or its end was lost.
func (c *Client) CaughtUp() <-chan struct{} { return c.behind.done }

// met notes how far the shim is. c.mu is held.
func (c *Client) met(w stream.Welcome) {
	if c.behind.last == 0 && !c.behind.over {
		c.behind.last, c.behind.after = max(w.Next, 1)-1, w.After
		if w.RequestMS >= 0 && w.RequestMS <= maxAge.Milliseconds() {
			c.behind.request, c.behind.came = w.Request, time.Now().Add(-time.Duration(w.RequestMS)*time.Millisecond)
		}
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
