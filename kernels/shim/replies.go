//go:build linux

package shim

import (
	"slices"
	"strings"
	"time"

	"cellblock/kernels/stream"
)

const (
	// idleWait is how long a reply waits for its execution's idle while IOPub brings nothing at all: a kernel may have thrown it away.
	// It waits maxWaits times as long while something comes.
	idleWait, maxWaits = time.Second, 10
	// maxReplies is how many wait at most, and maxReply the bytes of one.
	maxReplies, maxReply = 64, 64 << 10
)

// replies are those of executions whose idle has not come yet. A reply is not behind the outputs, which have a channel of their own:
// of a cell that shows much it is there long before them. If it had its number then, the server, which keeps an execution's end until it
// has been read, could acknowledge nothing that comes after it, and the journal would fill with what has been dealt with. So it gets its
// number when the idle gets its own, behind all outputs. They are guarded by the gate's mu.
type replies struct {
	waiting []reply  // in the order in which they came, which is the kernel's
	idled   []string // the requests whose idle came last, and before their reply
	timer   *time.Timer
	waits   int  // how often the timer has run out and something had come
	heard   bool // IOPub has brought something since the timer was set
	full    bool // and has waited for room in the journal
	paused  int  // messages of IOPub that wait for it now
}

type reply struct {
	parent string
	parts  [][]byte
}

// keep has a reply wait if its idle is still to come, and there is a place for it; overdue is called when it has waited for too long.
func (r *replies) keep(parent string, parts [][]byte, overdue func()) bool {
	if i := slices.Index(r.idled, parent); i >= 0 {
		r.idled = slices.Delete(r.idled, i, i+1)
		return false
	}
	if len(r.waiting) >= maxReplies || sizeOf(parts) > maxReply {
		return false
	}
	r.waiting = append(r.waiting, reply{strings.Clone(parent), parts})
	if len(r.waiting) == 1 {
		r.waits = 0
		r.watch(overdue)
	}
	return true
}

func (r *replies) watch(overdue func()) {
	r.heard, r.full = false, false
	if r.timer == nil {
		r.timer = time.AfterFunc(idleWait, overdue)
	} else {
		r.timer.Reset(idleWait)
	}
}

// idle takes the reply to a request whose idle has come, and those that came before it: their idle will not come any more.
func (r *replies) idle(parent string) []reply {
	for i := range r.waiting {
		if r.waiting[i].parent == parent {
			return r.take(i + 1)
		}
	}
	if len(r.idled) == maxReplies {
		r.idled = slices.Delete(r.idled, 0, 1)
	}
	r.idled = append(r.idled, parent)
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

// mayCome tells whether an idle that is waited for may be behind what comes, or what waits for room.
func (r *replies) mayCome() bool {
	if r.full || r.paused > 0 {
		r.waits = 0
		return true
	}
	r.waits++
	return r.heard && r.waits < maxWaits
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
	case r.mayCome():
		r.watch(g.overdue)
	default:
		g.passReplies(r.take(len(r.waiting)))
	}
}

// pause counts the messages of IOPub that wait for room in the journal.
func (g *gate) pause(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies.paused += n
	g.replies.full = true
}
