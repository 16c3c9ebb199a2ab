package kernels

// A fence finds out what was lost. When a connection broke, a request that was written to it may never have reached the
// shim; when the journal gave frames up, a reply may have been among them; an adopted execution may have ended before; and
// a kernel that nobody read fast enough has thrown an idle away. Each would be waited for without end. Kernels execute in
// order, so an empty silent execution sent now is answered after all that were sent before: a call older than a fence that
// has no reply when the fence has one, or no idle when the fence has one, will never have it.
//
// There is one at a time: a newer one tells all that an older one could.

// needFence tells whether a call waits that nobody would miss. c.mu is held.
func (s *calls) needFence() bool {
	for _, k := range s.open {
		if k.patient && !k.replied && (k.order > 0 || k.adopted) {
			return true
		}
	}
	return false
}

// fenceState is the sending of fences. Guarded by Client.mu.
type fenceState struct {
	// sending tells that a goroutine does, again that it must send another.
	sending, again bool
	// last is the newest.
	last *call
}

// wantFence has a fence sent that is younger than all that was written so far. c.mu is held.
func (c *Client) wantFence() {
	f := &c.calls.fences
	f.again = true
	if !f.sending && c.err == nil {
		f.sending = true
		c.wg.Go(c.sendFences)
	}
}

// sendFences sends fences until none is wanted. It ends with the client.
func (c *Client) sendFences() {
	content := executeContent{ExecuteRequest: ExecuteRequest{Silent: true}}
	for k := c.newFence(); k != nil; k = c.newFence() {
		if err := c.sendCall(c.ctx, k, "execute_request", content); err != nil {
			c.log.Debug("kernels: no fence sent", "err", err)
		}
	}
}

// newFence registers a fence in place of the one before, nil if none is wanted.
func (c *Client) newFence() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.calls.fences
	if !f.again || c.err != nil {
		f.sending = false
		return nil
	}
	if f.last != nil {
		f.last.closed = true
		c.settle(f.last)
	}
	k := newCall(newMsgID())
	k.isFence, k.fence = true, c.calls.written
	f.again, f.last = false, k
	c.register(k)
	return k
}

// verdict tells the calls that were written before a fence what they will never have, now that the fence has it. c.mu is
// held.
func (c *Client) verdict(fence *call) {
	for _, k := range c.calls.open {
		if k == fence || k.order > fence.fence || k.order == 0 && !k.adopted {
			continue
		}
		k.lost = k.lost || fence.replied && !k.replied
		k.muted = k.muted || fence.idle && !k.idle
		c.settle(k)
	}
}
