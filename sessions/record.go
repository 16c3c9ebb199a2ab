package sessions

import (
	"strings"
	"sync"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// record keeps what one cell produced, in order, for any number of readers who come when they like. Writing never waits
// for a reader. When more was produced than its limit, the first half of the limit and the last half are kept; a reader
// who gets to the hole is told exactly what he missed.
//
// It is the one place where outputs are kept, and later the one place that writes them to the store.
type record struct {
	limit int64

	mu        sync.Mutex
	head      []kernels.Output
	headBytes int64
	tail      []kernels.Output
	tailBytes int64
	count     int // outputs ever appended
	endCount  int // count when the cell ended
	total     tally
	inTail    tally
	ended     bool
	changed   chan struct{} // closed at the next change; nil while nobody waits for one
}

func newRecord(limit int64) *record {
	return &record{limit: limit}
}

// append adds an output. It is allowed after end: late output of background work belongs to its own cell.
func (r *record) append(out kernels.Output) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := outputSize(out)
	r.count++
	r.total.add(out, 1)
	if len(r.tail) == 0 && r.headBytes+size <= r.limit/2 {
		r.head = append(r.head, out)
		r.headBytes += size
	} else {
		r.push(out, size)
	}
	r.broadcast()
}

// push adds to the tail and drops its oldest outputs until it fits again. The newest stays, however large it is.
func (r *record) push(out kernels.Output, size int64) {
	r.tail = append(r.tail, out)
	r.tailBytes += size
	r.inTail.add(out, 1)
	for len(r.tail) > 1 && r.tailBytes > r.limit/2 {
		oldest := r.tail[0]
		r.tail[0] = kernels.Output{}
		r.tail = r.tail[1:]
		r.tailBytes -= outputSize(oldest)
		r.inTail.add(oldest, -1)
	}
}

// end says that the cell has ended: readers who have read everything are done. It returns a cursor for what may still be
// appended.
func (r *record) end() cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.endCount = true, r.count
	r.broadcast()
	return cursor{index: r.count, passed: r.total, late: true}
}

func (r *record) broadcast() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// size is what the record holds now, in bytes.
func (r *record) size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headBytes + r.tailBytes
}

// cursor is one reader's place in a record.
type cursor struct {
	index  int   // of the next output, in the order of append
	passed tally // what the reader got or was told that he missed
	notes  []kernels.Output
	noted  bool // what was read last is one of notes
	late   bool // reads what was appended after the end, and only that
}

// cursorAt returns a cursor for a reader who has had the outputs before an index. Of those that are not kept any more it
// is not known which he had: he is told of all of them.
func (r *record) cursorAt(index int) cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := cursor{index: max(0, min(index, r.count))}
	for _, out := range r.head[:min(c.index, len(r.head))] {
		c.passed.add(out, 1)
	}
	if firstInTail := r.count - len(r.tail); len(r.tail) > 0 && c.index >= firstInTail {
		c.passed = r.total.minus(r.inTail)
		for _, out := range r.tail[:c.index-firstInTail] {
			c.passed.add(out, 1)
		}
	} else if c.index > len(r.head) {
		c.index = len(r.head)
	}
	return c
}

// lateFrom returns a cursor for what was appended after the end, from an index on.
func (r *record) lateFrom(index int) cursor {
	r.mu.Lock()
	ended := r.endCount
	r.mu.Unlock()
	c := r.cursorAt(max(index, ended))
	c.late = true
	return c
}

// length is how many outputs were ever appended.
func (r *record) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// next returns the output at the cursor and moves on. Where there is none yet it returns false and the channel that is
// closed at the next change; a nil channel means that none will come.
func (r *record) next(c *cursor) (kernels.Output, bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	firstInTail, last := r.count-len(r.tail), r.count
	if r.ended && !c.late {
		last = r.endCount
	}
	if c.index >= len(r.head) && c.index < min(firstInTail, last) {
		missed := r.total.minus(r.inTail).minus(c.passed)
		c.notes = missed.notices()
		c.passed = r.total.minus(r.inTail)
		c.index = firstInTail
	}
	switch {
	case len(c.notes) > 0:
		note := c.notes[0]
		c.notes, c.noted = c.notes[1:], true
		return note, true, nil
	case c.index < min(len(r.head), last):
		return c.take(r.head[c.index]), true, nil
	case c.index < last:
		return c.take(r.tail[c.index-firstInTail]), true, nil
	case r.ended:
		return kernels.Output{}, false, nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return kernels.Output{}, false, r.changed
}

func (c *cursor) take(out kernels.Output) kernels.Output {
	c.index++
	c.noted = false
	c.passed.add(out, 1)
	return out
}

// tally counts outputs by what can be said about them when they are left out.
type tally struct {
	stdout, stderr struct{ bytes, lines int64 }
	messages       int64
	messageBytes   int64
}

// add counts out, n times: 1 or -1.
func (t *tally) add(out kernels.Output, n int64) {
	if out.Kind != kernels.OutputStream {
		t.messages += n
		t.messageBytes += n * (outputSize(out) - overhead)
		return
	}
	of := &t.stdout
	if out.Stream == "stderr" {
		of = &t.stderr
	}
	of.bytes += n * int64(len(out.Text))
	of.lines += n * int64(strings.Count(out.Text, "\n"))
}

func (t tally) minus(u tally) tally {
	t.stdout.bytes -= u.stdout.bytes
	t.stdout.lines -= u.stdout.lines
	t.stderr.bytes -= u.stderr.bytes
	t.stderr.lines -= u.stderr.lines
	t.messages -= u.messages
	t.messageBytes -= u.messageBytes
	return t
}

// notices says what the tally counts, in the words of the shim.
func (t tally) notices() []kernels.Output {
	var notes []kernels.Output
	note := func(e stream.Elided) {
		notes = append(notes, kernels.Output{Kind: kernels.OutputNotice, Notice: &kernels.Notice{Elided: &e}})
	}
	if t.stdout.bytes > 0 {
		note(stream.Elided{Stream: "stdout", Bytes: t.stdout.bytes, Lines: t.stdout.lines})
	}
	if t.stderr.bytes > 0 {
		note(stream.Elided{Stream: "stderr", Bytes: t.stderr.bytes, Lines: t.stderr.lines})
	}
	if t.messages > 0 {
		note(stream.Elided{Messages: t.messages, Bytes: t.messageBytes})
	}
	return notes
}

// overhead is what an output costs in memory beside its texts, about.
const overhead = 256

func outputSize(out kernels.Output) int64 {
	size := overhead + len(out.Text) + len(out.Metadata)
	for mime, data := range out.Data {
		size += len(mime) + len(data)
	}
	if out.Error != nil {
		size += len(out.Error.Name) + len(out.Error.Value)
		for _, line := range out.Error.Traceback {
			size += len(line)
		}
	}
	return int64(size)
}
