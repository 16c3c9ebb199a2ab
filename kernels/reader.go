package kernels

import (
	"context"
	"fmt"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// serve reads frames until the connection breaks or the kernel dies; the error says which.
func (c *Client) serve(l *link) error {
	for {
		select {
		case <-c.dialer.Exited():
			l.drain()
		default:
		}
		f, err := l.r.ReadFrame()
		if err != nil {
			return err
		}
		if err := c.handle(l, f); err != nil {
			return err
		}
	}
}

func (c *Client) handle(l *link, f stream.Frame) error {
	switch f.Type {
	case stream.FrameMessage:
		return c.handleMessage(f.Payload)
	case stream.FrameEvent:
		return c.handleEvent(f.Payload)
	case stream.FrameReply:
		var r stream.Reply
		if err := stream.DecodeJSON(f.Payload, &r); err != nil {
			return err
		}
		c.answer(r)
		return nil
	}
	if stream.IsTunnelFrame(f.Type) {
		return l.tunnels.Receive(f)
	}
	return fmt.Errorf("%w: frame of type %d", stream.ErrMalformed, f.Type)
}

func (c *Client) handleMessage(payload []byte) error {
	m, err := stream.DecodeMessage(payload)
	if err != nil {
		return err
	}
	if fresh, err := c.admit(m.Seq, nil); !fresh {
		return err
	}
	msg, err := wire.FromParts(m.Parts)
	if err == nil {
		err = c.route(m, msg, int64(len(payload)))
	}
	if err != nil {
		c.broken(m, err)
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx) // the message may not have reached its queue: leave it for the next client
	}
	c.commit(m.Seq, len(payload))
	return nil
}

func (c *Client) handleEvent(payload []byte) error {
	seq, e, err := stream.DecodeEvent(payload)
	if err != nil {
		return err
	}
	var gap *stream.Gap
	if e.Kind == stream.EventGap {
		gap = e.Gap
	}
	if fresh, err := c.admit(seq, gap); !fresh {
		return err
	}
	if err := c.event(seq, e, int64(len(payload))); err != nil {
		return err
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	c.commit(seq, len(payload))
	return nil
}

// event deals with one event of a size. An error is the kernel's death.
func (c *Client) event(seq uint64, e stream.Event, size int64) error {
	switch e.Kind {
	case stream.EventStarted:
		c.started(e.Incarnation)
	case stream.EventExited:
		return c.exited(e)
	case stream.EventElided:
		if e.Elided != nil {
			c.notice(seq, e.Time, e.Elided.Parent, Notice{Elided: e.Elided}, size)
		}
	case stream.EventDropped:
		if e.Dropped != nil {
			c.log.Debug("kernels: the shim dropped messages", "channel", clip(e.Dropped.Channel), "reason", clip(e.Dropped.Reason), "count", e.Dropped.Count)
			if !c.unsent(e.Dropped) {
				c.notice(seq, e.Time, e.Dropped.Parent, Notice{Dropped: e.Dropped}, size)
			}
		}
	case stream.EventUsed:
		if e.Used != nil {
			c.change(e.Used.Parent, func(k *call) { k.used = *e.Used })
		}
	case stream.EventGap:
		if e.Gap != nil {
			c.gap(seq, e.Time, e.Gap)
		}
	}
	return nil
}

// unsent notes that an execution's own request did not reach the kernel, if that is what was dropped: its result will say so.
func (c *Client) unsent(d *stream.Dropped) bool {
	if d.Channel != stream.Shell.String() || d.MsgType != "execute_request" {
		return false
	}
	return c.change(d.Parent, func(k *call) {
		if !k.seen {
			k.unsent, k.lost = true, true
		}
	})
}

// notice puts a notice among the outputs of its execution; one without a parent goes to what runs.
func (c *Client) notice(seq uint64, at time.Time, parent string, n Notice, size int64) {
	if parent == "" {
		parent = c.running()
	}
	if at.IsZero() {
		at = time.Now()
	}
	c.deliver(parent, Output{Kind: OutputNotice, Seq: seq, Time: at, Notice: &n}, size)
}

// gap tells every execution that something may be missing, and asks whether their ends are.
func (c *Client) gap(seq uint64, at time.Time, g *stream.Gap) {
	c.mu.Lock()
	var ids []string
	for id, k := range c.calls.open {
		if k.exec != nil {
			ids = append(ids, id)
		}
	}
	if c.calls.needFence() {
		c.wantFence()
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.notice(seq, at, id, Notice{Gap: g}, 0)
	}
}

// broken counts a message that cannot be read. It never ends the reader.
func (c *Client) broken(m stream.Message, err error) {
	c.mu.Lock()
	c.counters.Broken++
	c.mu.Unlock()
	c.log.Debug("kernels: a message that cannot be read", "channel", m.Channel.String(), "seq", m.Seq, "err", clip(err.Error()))
}
