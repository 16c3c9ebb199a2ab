//go:build linux

package shim

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

const (
	// maxExecutions is how many executions the gate knows at a time: the running one, and the last that ended, whose
	// threads may still print.
	maxExecutions = 64
	// maxParent is the longest msg_id that the gate accounts for, in bytes.
	maxParent = 256
)

// gate stands between the kernel and the journal. Output of an execution passes until that has produced limit bytes, or
// while the journal is crowded because nobody fetches it; from there on only the end of each stream is kept, and what
// comes before it, and whole messages of other kinds, is counted. What ends an execution or asks something always passes.
// Its methods may be called concurrently.
type gate struct {
	journal *journal
	limit   int64
	tail    int
	meter   *meter // nil: nobody measures

	mu    sync.Mutex
	execs map[string]*execution
	order []*execution // least recently active first
	// The requests whose reply and whose idle came last. With the second of the two an execution ends, and only that is
	// worth waking readers for at once.
	replied, idled string
	replies        replies
}

// execution is what the gate knows of one request.
type execution struct {
	parent string // its msg_id
	passed int64  // bytes of output
	over   bool   // has reached the limit
	ended  bool   // its idle was seen
	held   held
}

func newGate(j *journal, limit, tail int64) *gate {
	return &gate{journal: j, limit: limit, tail: int(tail), execs: make(map[string]*execution)}
}

// label is what the gate reads of a message: its type, and the msg_id of the request that caused it.
type label struct{ msgType, parent string }

// readLabel is false for headers that cannot be read, or are larger than any should be.
func readLabel(parts [][]byte) (label, bool) {
	if len(parts) < 4 {
		return label{}, false
	}
	header, err := wire.ParseHeader(parts[0])
	parent, parentErr := wire.ParseHeader(parts[1])
	ok := err == nil && parentErr == nil && len(parent.MsgID) <= maxParent
	return label{header.MsgType, parent.MsgID}, ok
}

// isShown tells whether a message is output that passes whole or not at all.
func isShown(l label) bool {
	return l.msgType == "display_data" || l.msgType == "update_display_data" || l.msgType == "execute_result"
}

// room waits, until ctx ends, as long as the journal is full and the message would pass if it were not.
func (g *gate) room(ctx context.Context, ch stream.Channel, parts [][]byte) {
	if ch != stream.IOPub || g.journal.fits() {
		return
	}
	if l, ok := readLabel(parts); ok && isShown(l) && !g.over(l.parent) {
		g.pause()
		g.resume(g.journal.room(ctx))
	}
}

// over tells whether an execution has reached its limit.
func (g *gate) over(parent string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.execs[parent]
	return e != nil && e.over
}

// message takes one message of the kernel.
func (g *gate) message(ch stream.Channel, parts [][]byte) {
	if ch == stream.Control {
		g.journal.message(ch, parts)
		return
	}
	l, ok := readLabel(parts)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies.heard = g.replies.heard || ch == stream.IOPub
	switch {
	case !ok:
		g.journal.message(ch, parts)
	case ch == stream.Shell:
		g.reply(l, parts)
	case ch == stream.IOPub && l.msgType == "stream":
		g.stream(g.execution(l.parent), parts, nil)
	case ch == stream.IOPub && isShown(l):
		g.output(g.execution(l.parent), parts)
	default:
		if ch == stream.IOPub && l.msgType == "execute_input" && g.meter != nil {
			g.meter.begin(l.parent)
		}
		g.other(ch, l, parts)
	}
}

// piece takes a part of a text that is too large for one message, and tells whether it has passed. If not, nobody looks at it any more.
// What is held back of it is decoded into a buffer of the caller's.
func (g *gate) piece(parts [][]byte, decoded *[]byte) (passed bool) {
	l, ok := readLabel(parts)
	if !ok {
		l.parent = ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies.heard = true
	return g.stream(g.execution(l.parent), parts, decoded)
}

// stream takes text, and tells whether it has passed as it is. Of a long one, what is held back is gathered in decoded first: line by line
// its end would grow, and leave more garbage than it has text.
func (g *gate) stream(e *execution, parts [][]byte, decoded *[]byte) (passed bool) {
	size := int64(len(parts[3]))
	if g.passes(e, size) {
		g.journal.patient(stream.IOPub, parts)
		return true
	}
	kept := g.excerpt(e)
	keep := kept.add
	if decoded != nil {
		*decoded = (*decoded)[:0]
		keep = func(text []byte) { *decoded = append(*decoded, text...) }
	}
	s := newSkim(keep)
	_, _ = s.Write(parts[3])
	if decoded != nil {
		kept.add(*decoded)
	}
	if name, ok := s.stream(); ok {
		g.hold(e, parts, name, kept)
	} else {
		e.held.whole(size)
	}
	return false
}

// headRoom is how much of a message that does not pass whole may still pass. Only what reaches the limit is cut: a
// crowded journal takes nothing.
func (g *gate) headRoom(e *execution) int {
	if !e.over || !e.held.empty() || g.journal.crowded() {
		return 0
	}
	return int(g.limit - e.passed)
}

// excerpt returns what keeps of a text what may pass, and its end.
func (g *gate) excerpt(e *execution) *excerpt {
	return &excerpt{headMax: g.headRoom(e), tail: tail{max: g.tail}}
}

// hold lets the head of a text pass and keeps its tail.
func (g *gate) hold(e *execution, parts [][]byte, name string, text *excerpt) {
	if len(text.head) > 0 {
		g.journal.patient(stream.IOPub, withText(parts, name, text.head))
	}
	if e.over {
		e.passed = g.limit // the head was the last
	}
	if text.tail.bytes > 0 || len(text.tail.buf) > 0 {
		e.held.text(name, &text.tail, parts)
	}
}

// output takes a message that passes whole or not at all.
func (g *gate) output(e *execution, parts [][]byte) {
	var size int64
	for _, p := range parts[3:] {
		size += int64(len(p))
	}
	if g.passes(e, size) {
		g.journal.patient(stream.IOPub, parts)
	} else {
		e.held.whole(size)
	}
}

// passes decides about output of size bytes.
func (g *gate) passes(e *execution, size int64) bool {
	if !e.over && !e.held.empty() && g.journal.relieved() {
		g.release(e)
	}
	if e.over || e.passed+size > g.limit {
		e.over = true
	} else if e.held.empty() && !g.journal.crowded() {
		e.passed += size
		return true
	}
	g.holdOnly(e)
	return false
}

// holdOnly lets what other executions wait with pass, so that all of them together never hold more than one may.
func (g *gate) holdOnly(e *execution) {
	for _, o := range g.order {
		if o != e && !o.held.empty() {
			g.release(o)
		}
	}
}

// reply takes a reply to a request on shell.
func (g *gate) reply(l label, parts [][]byte) {
	ended := g.replies.hadIdle(l.parent)
	if l.msgType == "execute_reply" {
		if !ended && g.replies.keep(l.parent, parts, g.overdue) {
			return
		}
		g.passAll() // none overtakes an earlier one: executions end in their order
	}
	g.replied = strings.Clone(l.parent)
	if ended {
		g.idled = g.replied // the one that counts, though others may have come since
	}
	g.half(stream.Shell, parts)
}

// half takes one of the two messages that end an execution.
func (g *gate) half(ch stream.Channel, parts [][]byte) {
	if g.replied == g.idled {
		g.used(g.idled)
		g.journal.message(ch, parts)
	} else {
		g.journal.patient(ch, parts)
	}
}

// used says what an execution has used, before the message that ends it.
func (g *gate) used(parent string) {
	if g.meter == nil {
		return
	}
	if u, ok := g.meter.end(parent); ok {
		g.journal.note(stream.Event{Kind: stream.EventUsed, Used: &u})
	}
}

// other takes a message that always passes, after what its execution waits with where the order can matter.
func (g *gate) other(ch stream.Channel, l label, parts [][]byte) {
	idle := l.msgType == "status" && isIdle(parts)
	if e := g.execs[l.parent]; e != nil && (idle || l.msgType == "error" || l.msgType == "input_request") {
		g.release(e)
		e.ended = e.ended || idle
	}
	switch {
	case idle:
		g.releaseEnded()
		g.idled = strings.Clone(l.parent)
		g.passReplies(g.replies.idle(g.idled))
		g.half(ch, parts)
	case ch == stream.IOPub:
		g.journal.patient(ch, parts)
	default:
		g.journal.message(ch, parts)
	}
}

func isIdle(parts [][]byte) bool {
	var c struct {
		State string `json:"execution_state"`
	}
	return json.Unmarshal(parts[3], &c) == nil && c.State == "idle"
}

func (g *gate) release(e *execution) {
	if !e.held.empty() {
		e.held.release(e.parent, g.journal)
	}
}

// releaseEnded lets pass what threads of earlier executions printed: no idle of their own will.
func (g *gate) releaseEnded() {
	for _, e := range g.order {
		if e.ended || e.parent == "" {
			g.release(e)
		}
	}
}

// relieve lets pass what waits only because the journal was crowded. It is called when that has become smaller.
func (g *gate) relieve() {
	if !g.journal.relieved() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.order {
		if !e.over {
			g.release(e)
		}
	}
}

// end lets everything pass that waits, and forgets all executions: their kernel has ended.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.order {
		g.release(e)
	}
	g.passAll()
	if g.meter != nil {
		if u, ok := g.meter.cut(); ok {
			g.journal.note(stream.Event{Kind: stream.EventUsed, Used: &u})
		}
	}
	clear(g.execs)
	g.order = nil
}

// execution returns what is known of a request, and makes room for it if that is nothing yet.
func (g *gate) execution(parent string) *execution {
	last := len(g.order) - 1
	if last >= 0 && g.order[last].parent == parent {
		return g.order[last]
	}
	e := g.execs[parent]
	if e == nil {
		e = &execution{parent: strings.Clone(parent)} // part of a header that may be long
		g.execs[e.parent] = e
		g.forget()
	} else {
		g.remove(e)
	}
	g.order = append(g.order, e)
	return e
}

// forget drops the execution that has been silent for longest, once there are too many.
func (g *gate) forget() {
	if len(g.order) >= maxExecutions {
		e := g.order[0]
		g.release(e)
		g.remove(e)
		delete(g.execs, e.parent)
	}
}

func (g *gate) remove(e *execution) {
	for i, o := range g.order {
		if o == e {
			g.order = append(g.order[:i], g.order[i+1:]...)
			return
		}
	}
}
