//go:build linux

package shim

import (
	"strings"
	"time"

	"cellblock/kernels/stream"
)

const (
	// idleWait is how long a reply waits for its execution's idle while IOPub brings nothing at all: a kernel may have thrown it away.
	idleWait = time.Second
	// maxReplies is how many wait at most, and maxReply the bytes of one.
	maxReplies, maxReply = 64, 64 << 10
)

// replies are those of executions whose idle has not come yet. A reply is not behind the outputs, which have a channel of their own:
// of a cell that shows much it is there long before them. If it had its number then, the server, which keeps an execution's end until it
// has been read, could acknowledge nothing that comes after it, and the journal would fill with what has been dealt with. So it gets its
// number when the idle gets its own, behind all outputs. They are guarded by the gate's mu.
type replies struct {
	waiting []reply // in the order in which they came, which is the kernel's
	timer   *time.Timer
	heard   bool // IOPub has brought something since the timer was set
	paused  int  // messages of IOPub that wait for room in the journal
}

type reply struct {
	parent string
	parts  [][]byte
}

// keep has a reply wait, if there is a place for it; overdue is called when it has waited for too long.
func (r *replies) keep(parent string, parts [][]byte, overdue func()) bool {
	if len(r.waiting) >= maxReplies || sizeOf(parts) > maxReply {
		return false
	}
	r.waiting = append(r.waiting, reply{strings.Clone(parent), parts})
	if len(r.waiting) == 1 {
		r.watch(overdue)
	}
	return true
}

func (r *replies) watch(overdue func()) {
	r.heard = false
	if r.timer == nil {
		r.timer = time.AfterFunc(idleWait, overdue)
	} else {
		r.timer.Reset(idleWait)
	}
}

// upTo takes the reply to a request, and those that came before it: their idle will not come any more.
func (r *replies) upTo(parent string) []reply {
	for i := range r.waiting {
		if r.waiting[i].parent == parent {
			return r.take(i + 1)
		}
	}
	return nil
}

func (r *replies) take(n int) []reply {
	taken := r.waiting[:n]
	if r.waiting = r.waiting[n:]; len(r.waiting) == 0 {
		r.waiting = nil
		if r.timer != nil {
			r.timer.Stop()
		}
	}
	return taken
}

// passReplies lets replies pass. g.mu is held.
func (g *gate) passReplies(of []reply) {
	for _, r := range of {
		g.replied = r.parent
		g.journal.patient(stream.Shell, r.parts)
	}
}

// overdue lets the replies pass that wait for an idle, if it seems that it will not come.
func (g *gate) overdue() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r := &g.replies; {
	case len(r.waiting) == 0:
	case r.heard || r.paused > 0:
		r.watch(g.overdue)
	default:
		g.passReplies(r.take(len(r.waiting)))
	}
}
