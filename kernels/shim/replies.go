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
	// It waits maxWaits times as long while something comes, and behind a kernel that throws nothing away: only a broken one is silent then.
	idleWait, maxWaits = time.Second, 10
	// maxReplies is how many wait at most, and maxReplyBytes what they hold together.
	maxReplies, maxReplyBytes = 64, 1 << 20
)

// replies are those of executions whose idle has not come yet. A reply is not behind the outputs, which have a channel of their own:
// of a cell that shows much it is there long before them. If it had its number then, the server, which keeps an execution's end until it
// has been read, could acknowledge nothing that comes after it, and the journal would fill with what has been dealt with. So it gets its
// number when the idle gets its own, behind all outputs. They are guarded by the gate's mu.
type replies struct {
	lossless bool     // the kernel waits rather than throw something away
	waiting  []reply  // in the order in which they came, which is the kernel's
	bytes    int64    // of them
	idled    []string // the requests whose idle came last, and before their reply
	timer    *time.Timer
	due      time.Time // when that runs out
	waits    int       // how often it has, and one waited on
	heard    bool      // IOPub has brought something since the timer was set
	full     bool      // and has waited for room in the journal
	paused   int       // messages of IOPub that wait for it now
}

type reply struct {
	parent string
	parts  [][]byte
}

// hadIdle tells whether a request's idle has come before its reply, which comes now.
func (r *replies) hadIdle(parent string) bool {
	i := slices.Index(r.idled, parent)
	if i >= 0 {
		r.idled = slices.Delete(r.idled, i, i+1)
	}
	return i >= 0
}

// keep has a reply wait if there is a place for it; overdue is called when it has waited for too long.
func (r *replies) keep(parent string, parts [][]byte, overdue func()) bool {
	size := sizeOf(parts)
	if len(r.waiting) >= maxReplies || r.bytes+size > maxReplyBytes {
		return false
	}
	r.waiting = append(r.waiting, reply{strings.Clone(parent), parts})
	r.bytes += size
	if len(r.waiting) == 1 {
		r.waits = 0
		r.watch(overdue)
	}
	return true
}

func (r *replies) watch(overdue func()) {
	r.heard, r.full = false, false
	r.due = time.Now().Add(idleWait)
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
			r.waits = 0
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
	for _, t := range taken {
		r.bytes -= sizeOf(t.parts)
	}
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
	return (r.heard || r.lossless) && r.waits < maxWaits
}

// passReplies lets replies pass. g.mu is held.
func (g *gate) passReplies(of []reply) {
	for _, r := range of {
		g.replied = r.parent
		g.journal.patient(stream.Shell, r.parts)
	}
}

// passAll lets all replies pass that wait, for an idle that may never come: what their executions used is told with them. g.mu is held.
func (g *gate) passAll() {
	for _, r := range g.replies.take(len(g.replies.waiting)) {
		g.used(r.parent)
		g.passReplies([]reply{r})
	}
}

// broken lets the replies pass whose idle will not come, as the connection is lost.
func (g *gate) broken() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passAll()
}

// overdue lets the replies pass that wait for an idle, if it seems that it will not come.
func (g *gate) overdue() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r := &g.replies; {
	case len(r.waiting) == 0 || time.Now().Before(r.due): // the timer was set anew while this waited for mu
	case r.mayCome():
		r.watch(g.overdue)
	default:
		g.passAll()
	}
}

// pause and resume count the messages of IOPub that wait for room in the journal. One that found nobody to wait for is none.
func (g *gate) pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies.paused++
}

func (g *gate) resume(waited bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies.paused--
	g.replies.full = g.replies.full || waited
}
