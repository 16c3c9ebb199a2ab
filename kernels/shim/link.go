//go:build linux

package shim

import (
	"context"
	"sync"
	"time"

	"cellblock/kernels/shim/channels"
	"cellblock/kernels/stream"
)

const (
	// drainTimeout is how long a dead kernel's IOPub may go on delivering what it had sent.
	drainTimeout = time.Second
	// lostGrace is how long a lost channel is taken for the beginning of the process's end.
	lostGrace = 500 * time.Millisecond
	// redialEvery is the time between attempts to connect to a kernel that runs and refuses.
	redialEvery = time.Second
)

// links is what the shim needs of *channels.Channels.
type links interface {
	Send(ch stream.Channel, parts [][]byte) error
	Close() error
}

// dialFunc is channels.Dial, or a test's.
type dialFunc func(context.Context, channels.Connection, channels.Options) (links, error)

func dialChannels(ctx context.Context, c channels.Connection, o channels.Options) (links, error) {
	cs, err := channels.Dial(ctx, c, o)
	if err != nil {
		return nil, err // not a typed nil
	}
	return cs, nil
}

// link is one connection to a kernel, and the channels.Handler for what that delivers.
type link struct {
	links
	gate    *gate
	drops   *drops
	trimmer *trimmer
	waits   bool            // the kernel does, while IOPub is not read
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	lost    chan error    // gets the first loss
	drained chan struct{} // closed when IOPub is lost: everything before has been handed on
	once    sync.Once
}

func newLink(s *Shim) *link {
	l := &link{gate: s.gate, drops: s.drops, trimmer: &s.trimmer, waits: s.config.Waits, lost: make(chan error, 1), drained: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Close ends the connection, and what waits in it.
func (l *link) Close() error {
	l.cancel()
	return l.links.Close()
}

// Message hands a message on. Output waits for room in the journal where the kernel waits, too: one that does not would lose what it
// says meanwhile, the end of its cell perhaps.
func (l *link) Message(ch stream.Channel, parts [][]byte) {
	if l.waits {
		l.gate.room(l.ctx, ch, parts)
	}
	l.gate.message(ch, parts)
	l.trimmer.passed(sizeOf(parts))
}

// Dropped reports a message that was broken.
func (l *link) Dropped(ch stream.Channel, reason string, frames [][]byte, bytes int64) {
	parent, msgType := claimed(frames)
	l.drops.add(stream.Dropped{Channel: ch.String(), Reason: reason, Parent: parent, MsgType: msgType, Bytes: bytes})
}

// Lost notes the end of a channel.
func (l *link) Lost(ch stream.Channel, err error) {
	if ch == stream.IOPub {
		l.once.Do(func() { close(l.drained) })
	}
	select {
	case l.lost <- err:
	default:
	}
}

// broken waits until a channel is lost while the kernel runs on, and returns why; nil when ctx ends first.
func (l *link) broken(ctx context.Context) error {
	select {
	case err := <-l.lost:
		if wait(ctx, lostGrace) != nil {
			return nil
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// drain waits until all that IOPub still had has been handed on.
func (l *link) drain() {
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-l.drained:
	case <-timer.C:
	}
}

// stayConnected connects to k, again if a channel is lost while the process runs, until ctx ends. It returns the last
// connection, which is open, or nil.
func (s *Shim) stayConnected(ctx context.Context, k *kernel) *link {
	log := s.log.With("pid", k.pid)
	for {
		l := newLink(s)
		var err error
		l.links, err = s.dial(ctx, k.connection, channels.Options{Handler: l, MaxMessage: s.config.MaxMessage, Logger: log})
		if err == nil {
			s.connected(k, l)
			if err = l.broken(ctx); err == nil {
				return l
			}
			if k.asked.Load() { // it is on its way out
				<-ctx.Done()
				return l
			}
			s.disconnected(k, l, err)
		}
		if ctx.Err() == nil {
			log.Warn("the kernel's channels are not connected", "error", err)
			_ = wait(ctx, redialEvery)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (s *Shim) connected(k *kernel, l *link) {
	k.setLink(l)
	s.wg.Go(s.used.open)
	s.outbox.connect(k, l)
	s.report(k, stream.EventConnected)
}

func (s *Shim) disconnected(k *kernel, l *link, cause error) {
	k.setLink(nil)
	s.outbox.disconnect()
	l.Close()
	s.gate.broken()
	s.drops.add(stream.Dropped{Channel: "all", Reason: "connection lost: " + cause.Error()})
}

// wait waits for d, or returns the error of ctx when that ends first.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ channels.Handler = (*link)(nil)
