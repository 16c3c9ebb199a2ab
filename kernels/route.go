package kernels

import (
	"encoding/json"
	"time"

	"cellblock/internal/jsontext"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// itemOverhead is what a queued output counts beside the bytes of its message.
const itemOverhead = 512

// route gives a message to the call that caused it. An error is a message that cannot be read.
func (c *Client) route(m stream.Message, msg wire.Message, size int64) error {
	switch m.Channel {
	case stream.Shell, stream.Control:
		c.replied(msg, m.Seq)
		return nil
	case stream.Stdin:
		return c.routeInput(m, msg, size)
	}
	switch msg.Header.MsgType {
	case "status":
		return c.routeStatus(m, msg)
	case "iopub_welcome":
		c.mu.Lock()
		c.kernel.welcomed()
		c.mu.Unlock()
		return nil
	case "execute_input":
		c.status(msg, "busy", m.Seq)
		return nil
	}
	out, err := decodeOutput(msg, m.Seq)
	if err != nil {
		return err
	}
	out.detach(size)
	c.deliver(msg.Parent.MsgID, out, size)
	return nil
}

func (c *Client) routeStatus(m stream.Message, msg wire.Message) error {
	var state string
	err := jsontext.KnownMembers(msg.Content, func(name []byte, value json.RawMessage) (err error) {
		if string(name) == "execution_state" {
			state, err = decodeText(value)
		}
		return err
	})
	if err == nil {
		c.status(msg, state, m.Seq)
	}
	return err
}

// routeInput deals with a kernel that wants input from the user. One that was told not to ask is not heard.
func (c *Client) routeInput(m stream.Message, msg wire.Message, size int64) error {
	if msg.Header.MsgType != string(OutputInput) {
		return nil
	}
	out, err := decodeOutput(msg, m.Seq)
	if err != nil {
		return err
	}
	asked := false
	c.change(msg.Parent.MsgID, func(k *call) {
		if k.exec != nil && (k.exec.allowStdin || k.adopted) {
			k.exec.input, asked = &msg.Header, true
		}
	})
	if asked {
		c.deliver(msg.Parent.MsgID, out, size)
	}
	return nil
}

// deliver queues an output for its execution, waiting while the queue is full. What belongs to no open execution is late
// or foreign.
func (c *Client) deliver(parent string, out Output, size int64) {
	size += itemOverhead
	c.mu.Lock()
	parent = c.calls.owner(parent)
	k := c.calls.open[parent]
	if k == nil {
		ended := c.calls.earlier.has(parent)
		c.mu.Unlock()
		c.nobody(parent, out, ended)
		return
	}
	defer c.mu.Unlock()
	k.live(out.Time)
	e := k.exec
	for !e.fits(size) && c.err == nil {
		c.waitForRoom(e)
	}
	if c.err == nil {
		e.put(out, size)
	}
}

// waitForRoom waits, deaf to the shim, until a reader takes something, the execution is forgotten, or the client or the
// container ends. c.mu is held, and released meanwhile.
func (c *Client) waitForRoom(e *Execution) {
	c.conn.hearing = time.Time{}
	c.mu.Unlock()
	exited := false
	select {
	case <-e.room:
	case <-c.ctx.Done():
	case <-c.dialer.Exited():
		exited = true
	}
	c.mu.Lock()
	c.conn.hearing = time.Now()
	if exited {
		e.unbounded = true // what is left on the way is little, and the death behind it must be heard
	}
}

// nobody deals with output that belongs to no open call: late output of an ended one, or foreign.
func (c *Client) nobody(parent string, out Output, ended bool) {
	late := ended || parent != "" && c.opts.Earlier != nil && c.opts.Earlier(parent)
	if late && c.opts.Late != nil {
		c.late(out, parent)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if late {
		c.counters.Late++
		return
	}
	c.counters.Foreign++
	c.log.Debug("kernels: output of an unknown request", "kind", string(out.Kind), "parent", clip(parent))
}
