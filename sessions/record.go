package sessions

import (
	"slices"
	"sync"

	"cellblock/kernels"
)

// record keeps what one cell produced, in order, for any number of readers who come when they like. Writing never waits
// for a reader. When more was produced than its limit, the first half of the limit and the last half are kept; a reader
// who gets to the hole is told exactly what he missed.
//
// It is the one place where outputs are kept. With a store it holds them in memory until they are there, and the latest
// of them a little longer; what is not in memory any more is read from the store (shelf.go).
type record struct {
	limit  int64
	number int // the cell's
	msgID  string
	shelf  *shelf // nil without a store
	told   cursor // up to where late output was handed out: see nextLate

	mu      sync.Mutex
	parts   []*part // what is kept, in order; the hole, if there is one, is behind the first heads of them
	heads   int
	full    bool // the head is complete; from here on it is the tail that grows
	hole    span // what is not kept, once full
	dropped tally
	kept    [2]int64 // bytes of head and tail
	memory  int64    // bytes of what is in memory

	seen     uint64 // what has a number of the shim's sequence up to this one is in the store since an earlier process
	count    int    // outputs ever appended
	seq      uint64 // the highest number of the shim's sequence among them
	endCount int    // count when the cell ended
	ended    bool
	changed  chan struct{} // closed at the next change; nil while nobody waits for one
}

// part is some outputs in a row, which leave the tail, or the memory, together.
type part struct {
	span
	outs  []kernels.Output // nil when they are in the store only
	bytes int64
	sum   tally
}

// span is indices from one up to another.
type span struct{ from, to int }

// maxPart bounds a part of more than one output, in bytes.
const maxPart = 256 << 10

func newRecord(limit int64, number int, msgID string) *record {
	return &record{limit: limit, number: number, msgID: msgID}
}

// append adds an output, unless it is there, and tells whether it will be told when that was dealt with (onDealt). It is allowed after end:
// late output of background work belongs to its own cell.
func (r *record) append(out kernels.Output) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if out.Seq != 0 && out.Seq <= r.seen {
		return false
	}
	size := outputSize(out)
	if !r.full && (r.kept[0]+size > r.limit/2 || r.overdue(maxUnsaved/2)) {
		r.full, r.hole = true, span{r.count, r.count}
	}
	r.add(out, size)
	if r.full {
		r.trim()
	}
	r.count++
	r.seq = max(r.seq, out.Seq)
	if r.shelf != nil {
		told = r.shelf.mark(r) && r.shelf.release != nil
		r.tidy()
	}
	r.broadcast()
	return told
}

// add puts an output into the last part of head or tail, or into a new one.
func (r *record) add(out kernels.Output, size int64) {
	most := min(maxPart, r.limit/16)
	fresh := len(r.parts) == 0 || r.full && len(r.parts) == r.heads
	if !fresh {
		last := r.parts[len(r.parts)-1]
		fresh = last.outs == nil || last.bytes+size > most
	}
	if fresh {
		r.parts = append(r.parts, &part{span: span{r.count, r.count}})
	}
	if !r.full {
		r.heads = len(r.parts)
	}
	p := r.parts[len(r.parts)-1]
	p.outs = append(p.outs, out)
	p.to++
	p.bytes += size
	p.sum.add(out, 1)
	r.kept[r.half()] += size
	r.memory += size
}

// half is where outputs go now: 0 for the head, 1 for the tail.
func (r *record) half() int {
	if r.full {
		return 1
	}
	return 0
}

// trim drops the oldest parts of the tail until it fits. The newest stays, however large it is.
func (r *record) trim() {
	for len(r.parts)-r.heads > 1 && (r.kept[1] > r.limit/2 || r.overdue(maxUnsaved)) {
		r.hole.to = r.parts[r.heads].to
		r.kept[1] -= r.parts[r.heads].bytes
		r.drop(r.heads)
	}
}

// drop gives up a part.
func (r *record) drop(i int) {
	p := r.parts[i]
	r.parts = slices.Delete(r.parts, i, i+1)
	if p.outs != nil {
		r.memory -= p.bytes
	}
	r.dropped = r.dropped.plus(p.sum)
}

// end says that the cell has ended: readers who have read everything are done.
func (r *record) end() {
	r.mu.Lock()
	r.ended, r.endCount = true, r.count
	r.tidy()
	r.broadcast()
	r.mu.Unlock()
	r.told = r.lateFrom(0)
}

// nextLate returns the next output that was appended after the end and that it has not returned yet. Only the session's
// runner calls it.
func (r *record) nextLate() (kernels.Output, bool) {
	if !r.told.late { // it has not ended
		return kernels.Output{}, false
	}
	out, ok, _ := r.next(&r.told)
	return out, ok
}

func (r *record) broadcast() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// size is what the record holds in memory, in bytes.
func (r *record) size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory
}

// length is how many outputs were ever appended.
func (r *record) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// own is how many outputs were appended before the end.
func (r *record) own() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endCount
}
