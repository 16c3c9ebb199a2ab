//go:build linux

package shim

import (
	"errors"
	"fmt"
	"time"

	"cellblock/kernels/stream"
)

// maxGrace bounds the grace of a request.
const maxGrace = 10 * time.Minute

var errTooMany = errors.New("too many requests at once")

// request serves a request in a goroutine of its own: some take long, and others must overtake them.
func (c *conn) request(payload []byte) error {
	var q stream.Request
	if err := stream.DecodeJSON(payload, &q); err != nil {
		return err
	}
	select {
	case c.requests <- struct{}{}:
	default:
		return errTooMany
	}
	if q.Op == stream.OpRestart {
		c.s.announceEnd(true) // now: frames that follow are meant for the next kernel
	}
	c.s.wg.Go(func() {
		defer func() { <-c.requests }()
		reply := c.s.serve(q)
		_ = c.write(func() error { return c.w.WriteJSON(stream.FrameReply, reply) })
	})
	return nil
}

// serve does what q asks.
func (s *Shim) serve(q stream.Request) stream.Reply {
	r := stream.Reply{ID: q.ID}
	grace := min(max(time.Duration(q.GraceMS)*time.Millisecond, 0), maxGrace)
	var err error
	switch q.Op {
	case stream.OpPing:
	case stream.OpInterrupt:
		err = s.interrupt()
	case stream.OpKillChildren:
		r.Killed, err = s.killChildren()
	case stream.OpRestart:
		err = s.restart(grace)
	case stream.OpStats:
		st := s.stats()
		r.Stats = &st
	default:
		err = fmt.Errorf("unknown request %.40q", q.Op)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}
