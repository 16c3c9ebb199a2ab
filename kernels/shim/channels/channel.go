package channels

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-zeromq/zmq4"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// Reasons that Handler.Dropped gives.
const (
	ReasonSignature    = "wrong signature"
	ReasonNotJupyter   = "not a Jupyter message"
	ReasonTooLarge     = stream.DroppedTooLarge
	ReasonTooManyParts = "too many parts"
	ReasonCutShort     = "cut short"
)

// channel is one ZMTP connection to the kernel. It uses zmq4.Conn and no zmq4.Socket: a socket reads ahead into a queue
// in goroutines of its own, which hang when it is closed at the wrong moment and which nothing can tell when to stop.
type channel struct {
	name  string
	zmtp  *zmq4.Conn
	guard *guard

	once  sync.Once
	cause error // why the connection ended; set before it is closed
}

// fail closes the connection. The first cause is the one that counts.
func (c *channel) fail(cause error) error {
	c.once.Do(func() {
		c.cause = fmt.Errorf("channels: %s: %w", c.name, cause)
		c.guard.Close()
	})
	return c.cause
}

// send writes frames and fails the channel when that fails.
func (c *channel) send(frames [][]byte) error {
	if err := c.guard.send(c.zmtp, frames); err != nil {
		return c.fail(err)
	}
	return nil
}

// recv reads one message, and says what was left out of it if it was too large. Any error has ended the channel.
func (c *channel) recv() ([][]byte, *cut, error) {
	msg, err := c.zmtp.RecvMsg()
	if err != nil {
		if c.guard.in.err != nil {
			err = c.guard.in.err // the same without zmq4's words
		}
		return nil, nil, c.fail(err)
	}
	return msg.Frames, c.guard.in.takeCut(), nil
}

// receiver hands what a channel receives to a Handler.
type receiver struct {
	*channel
	id      stream.Channel
	signer  *wire.Signer
	handler Handler
	text    *text // being read, or just read
}

// run receives until the connection ends.
func (r *receiver) run() {
	if r.takesText() {
		r.guard.in.divert = r.divert
	}
	for {
		frames, left, err := r.recv()
		r.endText(err == nil)
		switch {
		case errors.Is(err, ErrClosed):
			return
		case err != nil:
			r.handler.Lost(r.id, err)
			return
		case left != nil && left.to != nil: // it was text, and is told
		case left != nil:
			r.handler.Dropped(r.id, ReasonTooLarge, frames, left.total)
		default:
			r.message(frames)
		}
	}
}

func (r *receiver) message(frames [][]byte) {
	parts, err := r.signer.Unpack(frames)
	switch {
	case errors.Is(err, wire.ErrSignature):
		r.dropped(ReasonSignature, frames)
	case err != nil:
		r.dropped(ReasonNotJupyter, frames)
	case len(parts) > stream.MaxParts:
		r.dropped(ReasonTooManyParts, frames)
	default:
		r.handler.Message(r.id, parts)
	}
}

func (r *receiver) dropped(reason string, frames [][]byte) {
	var size int64
	for _, f := range frames {
		size += int64(len(f))
	}
	r.handler.Dropped(r.id, reason, frames, size)
}
