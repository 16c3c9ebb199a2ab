package kernels

import (
	"encoding/json"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// call is one request to the kernel that has not ended. It changes only under Client.mu, and every change is followed by
// Client.settle, which alone decides whether it is over.
type call struct {
	id   string
	exec *Execution // nil for a request that wants only its reply
	// order is its place among the requests that were written; 0 until it was.
	order uint64
	// incarnation is the kernel process it was meant for; an adopted call may have been meant for an earlier one.
	incarnation int
	adopted     bool
	// patient calls are those whose loss a fence must notice: nobody sends them again.
	patient bool
	// fence is set for a fence: the last order that was written before it.
	fence   uint64
	isFence bool

	// What was seen of it: any sign of life, its reply, its idle.
	seen, replied, idle bool
	// lost: its reply will never come. muted: its idle will not. expired: nobody waits any longer for the other half.
	// closed: the client has ended.
	lost, muted, expired, closed bool
	death                        *Death
	// unsent: the shim could not give it to the kernel.
	unsent bool
	// doubted: the grace for the other half is over, and a fence asks whether it will come.
	doubted bool

	// used is what it has used, as far as the shim says.
	used stream.Used

	reply    json.RawMessage
	begun    chan struct{} // closed with the first sign of life
	answered chan struct{} // closed with the reply
	done     chan struct{} // closed when it is over
	started  time.Time
	ended    time.Time // when the kernel sent the later of reply and idle
	timer    *time.Timer
}

func newCall(id string) *call {
	return &call{
		id: id, begun: make(chan struct{}), answered: make(chan struct{}), done: make(chan struct{}), started: time.Now(),
	}
}

// live notes a sign of life of the call, which the kernel sent at a time.
func (k *call) live(at time.Time) {
	if !k.seen {
		k.seen, k.started = true, at
		close(k.begun)
	}
}

// halfEnded notes when one of reply and idle was sent.
func (k *call) halfEnded(msg wire.Message) {
	if at := sentAt(msg.Header); at.After(k.ended) {
		k.ended = at
	}
}

// endedAt is when a call that is over was: now, but for one that an earlier client has sent, which may have ended long ago.
func (k *call) endedAt() time.Time {
	now, at := time.Now(), k.ended
	if k.death != nil {
		at = k.death.Time
	}
	if !k.adopted || at.IsZero() || at.After(now) {
		return now
	}
	return at
}

// over is the rule of the end: reply and idle were both seen (they come over two channels, in no mutual order), or
// what is missing cannot come any more.
func (k *call) over() bool {
	return (k.replied || k.lost) && (k.idle || k.muted) || k.expired || k.death != nil || k.closed
}

// half tells that one of the two was seen, so that the other may be waited for only so long.
func (k *call) half() bool { return k.replied || k.lost || k.idle }

// calls are all calls of a client. Guarded by Client.mu.
type calls struct {
	// open are the calls that are not over, by msg_id.
	open map[string]*call
	// execs are the executions that run or hold something that their reader has not dealt with.
	execs map[string]*Execution
	// earlier are the ids of calls that ended; the value tells executions from other requests.
	earlier recent
	// latest is the newest execution that was sent.
	latest string
	// written counts the requests written.
	written uint64
	fences  fenceState
}

// owner returns the execution to which the output of a request belongs. Kernels that keep one parent for all their
// threads tag what a thread of an earlier cell prints with whatever request came last, also with one of our own.
func (s *calls) owner(parent string) string {
	k := s.open[parent]
	if k != nil && k.exec == nil {
		return s.latest
	}
	if execution, ended := s.earlier.ids[parent]; k == nil && ended && !execution {
		return s.latest
	}
	return parent
}

func (s *calls) init() {
	s.open, s.execs = map[string]*call{}, map[string]*Execution{}
	s.earlier.init()
}

// change applies f to the call of id, if it is open, and retires the call when f completed it.
func (c *Client) change(id string, f func(*call)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls.open[id]
	if k == nil {
		return false
	}
	f(k)
	c.settle(k)
	return true
}

// settle retires a call that is over, and starts the grace of one that is half over. c.mu is held.
func (c *Client) settle(k *call) {
	switch {
	case k.over():
		c.retire(k)
	case k.half() && k.timer == nil:
		k.timer = time.AfterFunc(c.opts.Grace, func() { c.graceOver(k) })
	}
}

// retire ends a call, exactly once. c.mu is held.
func (c *Client) retire(k *call) {
	if c.calls.open[k.id] != k {
		return
	}
	delete(c.calls.open, k.id)
	c.calls.earlier.add(k.id, k.exec != nil)
	if k.timer != nil {
		k.timer.Stop()
	}
	if k.exec != nil {
		k.exec.conclude(k)
	}
	close(k.done)
}

// doubts is how many graces a call has in which a fence finds out whether its other half still comes.
const doubts = 6

// graceOver deals with a call whose other half did not come, unless the reader could not have read it. An execution is
// not given up for that: on a busy host a large output takes its time, and its idle comes behind it. A fence comes behind
// both.
func (c *Client) graceOver(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls.open[k.id] != k {
		return
	}
	wait := c.opts.Grace
	if k.doubted {
		wait *= doubts
	}
	if h := c.conn.hearing; !h.IsZero() {
		wait -= time.Since(h)
	}
	switch {
	case wait > 0:
		k.timer.Reset(wait)
	case k.exec != nil && !k.doubted:
		k.doubted = true
		k.timer.Reset(doubts * c.opts.Grace)
		c.wantFence()
	default:
		k.expired = true
		c.settle(k)
	}
}

// replied deals with a reply on shell or control.
func (c *Client) replied(msg wire.Message, seq uint64) {
	c.change(msg.Parent.MsgID, func(k *call) {
		if k.replied {
			return
		}
		k.live(k.started)
		k.replied, k.reply = true, msg.Content
		k.halfEnded(msg)
		close(k.answered)
		if k.exec != nil {
			k.exec.hold(seq)
		}
		if k.isFence {
			c.verdict(k)
		}
	})
}

// status deals with an execution state on IOPub.
func (c *Client) status(msg wire.Message, state string, seq uint64) {
	c.change(msg.Parent.MsgID, func(k *call) {
		k.live(sentAt(msg.Header))
		if state == "idle" && !k.idle {
			k.idle = true
			k.halfEnded(msg)
			if k.exec != nil {
				k.exec.hold(seq)
			}
			if k.isFence {
				c.verdict(k)
			}
		}
	})
}

// running returns the msg_id of the execution that most likely runs now, or "".
func (c *Client) running() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best *call
	for _, k := range c.calls.open {
		if k.exec == nil || k.replied {
			continue
		}
		if best == nil || k.seen && !best.seen || k.seen == best.seen && k.order < best.order {
			best = k
		}
	}
	if best == nil {
		return ""
	}
	return best.id
}

// recentIDs is how many ids of calls that ended are remembered, by which what they still produce is known for theirs.
const recentIDs = 256

// recent remembers a bounded number of ids.
type recent struct {
	ids  map[string]bool
	ring []string
	next int
}

func (r *recent) init() { r.ids = map[string]bool{} }

func (r *recent) has(id string) bool { _, ok := r.ids[id]; return ok }

func (r *recent) add(id string, value bool) {
	if len(r.ring) < recentIDs {
		r.ring = append(r.ring, id)
	} else {
		delete(r.ids, r.ring[r.next])
		r.ring[r.next] = id
		r.next = (r.next + 1) % recentIDs
	}
	r.ids[id] = value
}
