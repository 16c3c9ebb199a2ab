package kernels

import (
	"errors"
	"fmt"
	"time"

	"cellblock/kernels/stream"
)

// ackDelay gathers acknowledgements: at most one is sent in this time. Even at gigabytes a second the shim's journal
// does not fill up in it.
const ackDelay = 20 * time.Millisecond

// ackBytes is how much may be unacknowledged when an execution begins. The journal may be full of what an earlier one
// produced, and what this one produces would be left out for it.
const ackBytes = 1 << 20

// seqState is where we are in the shim's sequence. Guarded by Client.mu.
type seqState struct {
	// begun tells whether received means anything yet.
	begun bool
	// received is the last number that was routed; a new connection goes on after it.
	received uint64
	// acked is the last number that the shim was told it may forget; behind is about how many bytes have come since.
	acked  uint64
	behind int64
	// timer sends the next acknowledgement; due tells that it runs.
	timer *time.Timer
	due   bool
}

var errJump = errors.New("the sequence has a hole")

// admit tells whether a numbered frame is the next one. A number seen before is not; one out of turn is an error.
func (c *Client) admit(seq uint64, gap *stream.Gap) (fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.seq
	first := seq
	if gap != nil && gap.From <= seq {
		first = max(gap.From, 1)
	}
	switch {
	case seq == 0:
		return false, fmt.Errorf("%w: frame numbered 0", stream.ErrMalformed)
	case !s.begun:
		return true, nil
	case seq <= s.received:
		return false, nil
	case first > s.received+1:
		return false, fmt.Errorf("%w: %w: %d after %d", stream.ErrMalformed, errJump, seq, s.received)
	}
	return true, nil
}

// commit records that a numbered frame of a size was routed.
func (c *Client) commit(seq uint64, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq.begun, c.seq.received = true, seq
	c.seq.behind += int64(size)
	c.progress()
	c.ackSoon()
}

// floor returns the last number up to which everything was dealt with: routed, given to and left by its reader, and not
// held by Options.Late. c.mu is held.
func (c *Client) floor() uint64 {
	f := c.seq.received
	for _, e := range c.calls.execs {
		if oldest := e.oldest(); oldest != 0 && oldest <= f {
			f = oldest - 1
		}
	}
	return min(f, c.lates.floor())
}

// ackSoon arranges for an acknowledgement. c.mu is held.
func (c *Client) ackSoon() {
	if c.seq.due || c.err != nil {
		return
	}
	c.seq.due = true
	c.seq.timer.Reset(ackDelay)
}

// ackMuch acknowledges at once if much may be.
func (c *Client) ackMuch() {
	c.mu.Lock()
	much := c.seq.behind > ackBytes
	c.mu.Unlock()
	if much {
		c.sendAck()
	}
}

// sendAck acknowledges what was dealt with. A connection that cannot take it is the reader's to notice.
func (c *Client) sendAck() {
	c.mu.Lock()
	c.seq.due = false
	f, l := c.floor(), c.conn.link
	if l == nil || c.err != nil || f <= c.seq.acked {
		c.mu.Unlock()
		return
	}
	c.seq.acked = f
	if f == c.seq.received {
		c.seq.behind = 0
	}
	c.mu.Unlock()
	if err := l.write(func(w *stream.Writer) error { return w.WriteAck(f) }); err != nil {
		l.close()
	}
}
