package kernels

import "cellblock/kernels/stream"

// A fence finds out what was lost. When a connection broke, a request that was written to it may never have reached the
// shim; when the journal gave frames up, a reply may have been among them; and an adopted execution may have ended before.
// Each would be waited for without end. Kernels execute in order, so an empty silent execution sent now is answered after
// all that were sent before: a call older than a fence that has no reply when the fence has one will never have one.

// needFence tells whether a call waits that nobody would miss. c.mu is held.
func (s *calls) needFence() bool {
	for _, k := range s.open {
		if k.patient && !k.replied && (k.order > 0 || k.adopted) {
			return true
		}
	}
	return false
}

// fence sends one. It ends with the client.
func (c *Client) fence() {
	k := newCall(newMsgID())
	k.isFence = true
	c.mu.Lock()
	k.fence = c.calls.written
	c.register(k)
	c.mu.Unlock()
	content := executeContent{ExecuteRequest: ExecuteRequest{Silent: true}}
	if err := c.sendCall(c.ctx, k, stream.Shell, "execute_request", content); err != nil {
		c.log.Debug("kernels: no fence sent", "err", err)
	}
}

// verdict marks the calls that were written before a fence and have no reply. c.mu is held.
func (c *Client) verdict(before uint64) {
	for _, k := range c.calls.open {
		if k.order <= before && (k.order > 0 || k.adopted) && !k.replied {
			k.lost = true
			c.settle(k)
		}
	}
}
