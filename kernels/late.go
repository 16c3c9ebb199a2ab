package kernels

import "math"

// lates are the outputs that Options.Late holds, by the execution that they belong to. Guarded by Client.mu.
type lates map[string]*heldLate

// heldLate is where an execution's held outputs begin and end in the shim's sequence.
type heldLate struct{ first, last uint64 }

// late gives an output to Options.Late. It is held before that, because it may be released before Late returns.
func (c *Client) late(out Output, parent string) {
	c.mu.Lock()
	before := c.lates.hold(parent, out.Seq)
	c.mu.Unlock()
	if c.opts.Late(out, parent) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lates.unhold(parent, before)
}

// ReleaseLate tells that an execution's late outputs up to a number, which Options.Late held, were dealt with: the shim
// may forget them, and no later Client will get them. Numbers that were released before are ignored.
func (c *Client) ReleaseLate(msgID string, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lates.release(msgID, seq) {
		c.ackSoon()
	}
}

// hold notes an output and returns the number of the one that was held last before it, 0 if none is.
func (l lates) hold(id string, seq uint64) (before uint64) {
	if h := l[id]; h != nil {
		before, h.last = h.last, seq
		return before
	}
	l[id] = &heldLate{first: seq, last: seq}
	return 0
}

// unhold takes back the last hold, which returned before.
func (l lates) unhold(id string, before uint64) {
	h := l[id]
	switch {
	case h == nil:
	case before < h.first: // what was held before it has been released meanwhile, if there was any
		delete(l, id)
	default:
		h.last = before
	}
}

// release reports whether it changed anything.
func (l lates) release(id string, seq uint64) bool {
	h := l[id]
	switch {
	case h == nil || seq < h.first:
		return false
	case seq >= h.last:
		delete(l, id)
	default:
		h.first = seq + 1
	}
	return true
}

// floor returns the last number before all that is held.
func (l lates) floor() uint64 {
	floor := uint64(math.MaxUint64)
	for _, h := range l {
		floor = min(floor, h.first-1)
	}
	return floor
}
