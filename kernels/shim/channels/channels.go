// Package channels is the shim's side of the ZMQ channels of one kernel (Jupyter messaging, "Introduction"), without the
// heartbeat: that is for clients which cannot see the process. It is answered by a thread that knows nothing of the one
// which runs cells, and kernels that are asked every few seconds never rest.
//
// A kernel runs users' code, so its side of the channels is hostile. All bytes that it sends pass a guard before the
// ZMQ library sees them (see parser), and signatures are verified. What is broken or too large costs the message, which
// is reported, and what breaks the protocol costs the channel. Nothing that a kernel sends costs the process.
//
// Nothing is queued here: each channel has a goroutine that reads and hands on at once, because a kernel throws
// messages away when nobody reads them, the one that says that a cell has ended among them.
package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// ErrClosed is what Send returns after Close.
var ErrClosed = errors.New("closed")

// Handler is told what the kernel sends. Each channel calls from a goroutine of its own, in order, so calls for
// different channels overlap. While a call lasts its channel reads nothing, and a kernel that writes faster than it is
// read loses messages: return quickly. The slices belong to the Handler. It must not call Close.
type Handler interface {
	// Message is a message with a right signature: see stream.Message.Parts.
	Message(ch stream.Channel, parts [][]byte)
	// Dropped is what could not be a Message, for one of the Reasons. Frames are as they came, identities first, and
	// bytes is their size. For ReasonTooLarge, frames are empty from where the message went over the limit, and bytes
	// counts what they held.
	Dropped(ch stream.Channel, reason string, frames [][]byte, bytes int64)
	// Lost says that a channel's connection has ended, and why. It is the last call for that channel, and does not come
	// when Close was what ended it.
	Lost(ch stream.Channel, err error)
}

// Options are what Dial needs to know beside the connection.
type Options struct {
	// Handler is required. Its methods may be called before Dial returns.
	Handler Handler
	// MaxMessage is how large one message of the kernel may be, all frames together, in bytes; zero means
	// stream.DefaultMaxMessage. It does not bound what a Texter takes.
	MaxMessage int64
	// MaxText is how large the content of a message of type "stream" may be before a Texter is given it in pieces, in
	// bytes; zero means 4 MB.
	MaxText int64
	// HandshakeTimeout is how long the kernel's ZMQ may take to greet once it has accepted a connection; zero means 5
	// seconds.
	HandshakeTimeout time.Duration
	// WriteTimeout is how long a kernel may take none of what is sent to it until the channel is lost; zero means 30
	// seconds.
	WriteTimeout time.Duration
	// Logger is told what is of interest to developers only; nil means nobody is.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxMessage, stream.DefaultMaxMessage)
	setDefault(&o.MaxText, 4<<20)
	setDefault(&o.HandshakeTimeout, 5*time.Second)
	setDefault(&o.WriteTimeout, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Channels are the connected channels of one kernel. The methods may be called concurrently.
type Channels struct {
	signer   *wire.Signer
	channels map[stream.Channel]*channel
	wg       sync.WaitGroup
}

// Dial waits until the kernel's sockets exist and connects to all of them, IOPub first and subscribed to everything. The
// kernel handles the subscription in its own time: what it publishes right afterwards may still be missed. When ctx ends
// first, Dial returns its cause; afterwards ctx means nothing. A peer that is no ZMQ socket of the right type is an
// error.
func Dial(ctx context.Context, c Connection, o Options) (*Channels, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	d := newDialer(c, o)
	defer d.close()
	cs := &Channels{signer: wire.NewSigner([]byte(c.Key)), channels: make(map[stream.Channel]*channel)}
	if err := cs.dial(ctx, d); err != nil {
		cs.closeAll()
		return nil, err
	}
	cs.start(o)
	return cs, nil
}

// start starts the goroutines, which Close ends.
func (cs *Channels) start(o Options) {
	for id, c := range cs.channels {
		r := &receiver{channel: c, id: id, signer: cs.signer, handler: o.Handler}
		cs.wg.Go(r.run)
	}
}

// Send signs parts (see stream.Message.Parts) and sends them on a channel other than IOPub. Calls for one channel are
// sent in some order, each whole. It blocks while the kernel takes nothing, at most for the write timeout. When the
// connection fails, the channel is lost: the error says so, and so does Handler.Lost. Parts that are no message, and a
// channel that takes none, are errors that harm nothing.
func (cs *Channels) Send(ch stream.Channel, parts [][]byte) error {
	c, ok := cs.channels[ch]
	if !ok || ch == stream.IOPub {
		return fmt.Errorf("channels: %s takes no messages", ch)
	}
	frames, err := cs.signer.Pack(parts)
	if err != nil {
		return fmt.Errorf("channels: %s: %w", ch, err)
	}
	return c.send(frames)
}

// Close ends all channels and waits for their goroutines. It returns nil always, and may be called again.
func (cs *Channels) Close() error {
	cs.closeAll()
	cs.wg.Wait()
	return nil
}

func (cs *Channels) closeAll() {
	for _, c := range cs.channels {
		_ = c.fail(ErrClosed)
	}
}
