package kernels

// Held returns how many bytes all executions hold for their readers.
func (c *Client) Held() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var n int64
	for _, e := range c.calls.execs {
		n += e.size
	}
	return n
}

// Open returns how many calls are open.
func (c *Client) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls.open)
}

// Received returns the number of the last frame that was routed.
func (c *Client) Received() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq.received
}

// Dealt returns the last number up to which everything was dealt with.
func (c *Client) Dealt() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.floor()
}

// DecodeReply decodes a reply as Complete and Inspect do.
var DecodeReply = decodeReply

// MaxReply is the longest that is decoded, in bytes.
const MaxReply = maxReply
