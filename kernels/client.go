package kernels

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
)

// Defaults of Options.
const (
	DefaultGrace      = 5 * time.Second
	DefaultQueueBytes = 16 << 20
)

// Options say how a Client connects. The zero value is good for a kernel that nobody has talked to yet.
type Options struct {
	// Adopt are the msg_ids of executions that an earlier connection started and that may still produce. The shim sends everything
	// that was never acknowledged: outputs may come that were stored, and their Seq tells.
	Adopt []string
	// Earlier says whether a msg_id is that of an ended execution from before this connection; its output then goes to
	// Late. Nil: none is. It is called like Late.
	Earlier func(msgID string) bool
	// Late receives output whose execution has ended, from background threads, with the execution's msg_id. It is called
	// in order and must return soon: while it runs nothing is read. It must not call Close. It tells whether it holds the
	// output: then the shim keeps it until Execution.Release or ReleaseLate, for which Late need not have returned. Nil:
	// such output is counted.
	Late func(out Output, parent string) (held bool)
	// KernelID, when not empty, must be what the shim says.
	KernelID string
	// Logger is slog.Default when nil.
	Logger *slog.Logger
	// MaxFrame bounds one frame from the shim, in bytes. Zero: the most that a shim sends.
	MaxFrame int64
	// Grace is how long an execution may be half ended, with one of reply and idle seen, before it is StatusIncomplete.
	// Zero: DefaultGrace. The time in which nothing can be read does not count.
	Grace time.Duration
	// QueueBytes bounds what one execution holds for its reader. Zero: DefaultQueueBytes. When it is full the Client
	// reads no more from the shim, for any execution, until Next makes room.
	QueueBytes int64
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.MaxFrame <= 0 {
		o.MaxFrame = stream.DefaultMaxMessage + stream.FrameOverhead
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	return o
}

// Client speaks Jupyter with one kernel, over the stream of its shim. It routes what the kernel sends to the Executions
// that asked for it, finds the stream again when it breaks, and ends everything that waits when the kernel does. What
// comes over the stream is treated as hostile: it can end this Client, and nothing else.
//
// One goroutine reads. Its methods may be called concurrently.
type Client struct {
	dialer  Dialer
	opts    Options
	log     *slog.Logger
	session string

	ctx    context.Context // of the connection: ends with the Client
	cancel context.CancelFunc
	wg     sync.WaitGroup
	done   chan struct{}

	failures failures

	mu       sync.Mutex
	err      error // why done is closed
	conn     connState
	seq      seqState
	calls    calls
	lates    lates
	requests requestState
	kernel   kernelState
	behind   catchUp
	egress   egressState
	counters Counters
}

// Counters count what belonged to nobody.
type Counters struct {
	// Foreign are messages for requests that this client does not know; Broken are messages that could not be read;
	// Late are outputs whose execution had ended and that nobody wanted.
	Foreign, Broken, Late int64
}

// Connect dials the shim and agrees with it on where to go on. It fails with a *DeathError when the kernel's container
// has ended, with a *fault.Error of kind Unavailable when the shim does not answer or is not the one expected.
func Connect(ctx context.Context, d Dialer, o Options) (*Client, error) {
	o = o.withDefaults()
	c := &Client{dialer: d, opts: o, log: o.Logger, session: rand.Text(), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.conn.up = make(chan struct{})
	c.kernel.changed = make(chan struct{})
	c.kernel.live = make(chan struct{})
	c.behind.done = make(chan struct{})
	c.calls.init()
	c.lates = lates{}
	c.requests.pending = map[uint64]*request{}
	for _, id := range o.Adopt {
		c.adopt(id)
	}
	l, err := c.dial(ctx)
	if err != nil {
		c.cancel()
		return nil, connectError(d, err)
	}
	c.start(l)
	return c, nil
}

func connectError(d Dialer, err error) error {
	select {
	case <-d.Exited():
		return &DeathError{containerDeath(d.Status(), nil)}
	default:
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.New(fault.Unavailable, "cannot connect to the kernel's shim: %w", err)
}

func (c *Client) start(l *link) {
	c.seq.timer = time.AfterFunc(time.Hour, c.sendAck)
	c.seq.timer.Stop()
	c.mu.Lock()
	c.attach(l)
	c.mu.Unlock()
	c.wg.Go(func() { c.run(l) })
	c.wg.Go(c.watchExit)
}

// Done is closed when no kernel answers through this client any more: the kernel process ended unasked, its shim or
// container is gone or cannot be reached, or Close was called. Err then says which.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns nil before Done, then a *DeathError with the cause, or ErrClosed.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Counters returns what was thrown away so far.
func (c *Client) Counters() Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counters
}

// Close ends the connection and leaves the kernel running: what was not dealt with comes again to the next Client. It waits,
// for some seconds, until the shim has been told what was. Executions that run are StatusIncomplete for this Client. It returns
// when nothing of the Client runs any more.
func (c *Client) Close() error {
	c.lastAck()
	c.end(ErrClosed)
	c.wg.Wait()
	return nil
}

// lastAck acknowledges what is left, if the shim takes it soon.
func (c *Client) lastAck() {
	c.mu.Lock()
	l := c.conn.link
	c.mu.Unlock()
	if l == nil {
		return
	}
	defer time.AfterFunc(closeTimeout, l.close).Stop()
	c.sendAck()
}

// end ends the client with its cause, once, and with it everything that waits.
func (c *Client) end(cause error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = cause
		var death *DeathError
		errors.As(cause, &death)
		for _, k := range c.calls.open {
			if death != nil {
				k.death = &death.Death
			}
			k.closed = true
			c.settle(k)
		}
		close(c.done)
		if c.conn.link != nil {
			c.conn.link.interrupt() // before the reader can know, and sets a deadline of its own
		}
	}
	c.seq.timer.Stop()
	c.mu.Unlock()
	c.cancel()
}

// watchExit sees to it that the reader notices the end of the container, even if the carrier does not.
func (c *Client) watchExit() {
	select {
	case <-c.ctx.Done():
		return
	case <-c.dialer.Exited():
	}
	c.mu.Lock()
	l := c.conn.link
	c.mu.Unlock()
	if l != nil {
		l.drain()
	}
}
