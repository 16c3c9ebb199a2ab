package sessions

import (
	"context"
	"fmt"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// shelf is a record's place in the store: what of it is there, and how it gets there and back. Its fields are guarded by
// the record's lock; those above the line never change.
type shelf struct {
	saver *saver

	old     bool             // a later cell of the session has ended
	marked  bool             // the saver knows that there is something to save
	end     uint64           // the saver's ticket of how the cell ended
	saved   int              // the outputs before this index are in the store, or in the hole
	told    int              // up to where the store knows of the hole
	release func(seq uint64) // told up to which number of the shim's sequence outputs were dealt with; may be nil
	eased   chan struct{}    // closed when less is unsaved; nil while nobody waits for that
	hung    bool             // the store was waited for in vain, and is not again before it has taken something
}

const (
	// runningMemory is what a record keeps in memory of what is in the store, in bytes, while its cell runs: enough for
	// readers who follow.
	// endedMemory is the same of the cell that ended last, because its result is read once more; of older ones nothing is.
	runningMemory = 2 << 20
	endedMemory   = 256 << 10
	// maxUnsaved bounds what a record holds that is not in the store, in bytes: what a store that does not work cannot take
	// beyond it falls into the hole. One that is only slower than the kernel is waited for, from muchUnsaved on.
	maxUnsaved  = 32 << 20
	muchUnsaved = 12 << 20
	// maxBatch bounds the outputs of one commit, in bytes.
	maxBatch = 8 << 20
	// patience is how long the outputs of a cell wait for a store that takes none.
	patience = 5 * time.Second
	// fetchBytes bounds what a reader fetches at a time, and fetchTime how long that may take.
	fetchBytes = 1 << 20
	fetchTime  = 30 * time.Second
)

// mark tells the saver that there is something to save, and returns whether that will be tried. The caller holds r.mu.
func (h *shelf) mark(r *record) bool {
	if !h.marked {
		h.marked = h.saver.mark(r)
	}
	return h.marked
}

// unsaved is how many bytes are not in the store. The caller holds r.mu.
func (r *record) unsaved() (size int64) {
	for i := len(r.parts) - 1; i >= 0 && r.parts[i].to > r.shelf.saved; i-- {
		size += r.parts[i].bytes
	}
	return size
}

// overdue tells whether more than that is not in the store. The caller holds r.mu.
func (r *record) overdue(most int64) bool {
	return r.shelf != nil && r.memory > most && r.unsaved() > most
}

// tidy drops from memory what is in the store and not needed there. The caller holds r.mu.
func (r *record) tidy() {
	switch {
	case r.shelf == nil:
	case r.shelf.old:
		r.evict(0)
	case r.ended:
		r.evict(endedMemory)
	default:
		r.evict(runningMemory)
	}
}

// age notes that the record is not the session's last any more.
func (r *record) age() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shelf != nil {
		r.shelf.old = true
		r.tidy()
	}
}

// evict drops from memory what is in the store, the oldest first, until at most so many bytes are held. The part that
// grows stays. The caller holds r.mu.
func (r *record) evict(most int64) {
	for _, p := range r.parts {
		if r.memory <= most || p.to > r.shelf.saved {
			return
		}
		if p.outs != nil && (p.to < r.count || r.ended) {
			p.outs = nil
			r.memory -= p.bytes
		}
	}
}

// room waits while much is not in the store, as long as the store works and makes progress.
func (r *record) room(ctx context.Context) {
	r.mu.Lock()
	if !r.overdue(muchUnsaved) || r.shelf.hung || r.shelf.saver.trouble() != nil {
		r.mu.Unlock()
		return
	}
	if r.shelf.eased == nil {
		r.shelf.eased = make(chan struct{})
	}
	eased := r.shelf.eased
	r.mu.Unlock()
	r.shelf.saver.now()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-eased:
	case <-timer.C:
		r.mu.Lock()
		r.shelf.hung = r.shelf.eased == eased
		r.mu.Unlock()
	case <-ctx.Done():
	}
}

// batch is some of a record's outputs on their way into the store.
type batch struct {
	OutputsKept
	seq  uint64 // up to where in the shim's sequence the record's outputs are dealt with by this
	more bool   // there was more to save than fits
}

// batch returns what is to be saved next; ok is false when there is nothing. Until savedBatch it returns the same again.
func (r *record) batch() (b batch, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.shelf
	b.Number = r.number
	b.First = h.saved
	if r.full && h.saved >= r.hole.from {
		b.First = max(h.saved, r.hole.to)
	}
	var size int64
	for _, p := range r.parts {
		if p.to <= b.First || p.outs == nil {
			continue
		}
		if size += p.bytes; size > maxBatch && len(b.Outputs) > 0 {
			b.more = true
			break
		}
		b.Outputs = append(b.Outputs, p.outs[max(0, b.First-p.from):]...)
	}
	b.clip(r)
	if b.seq = r.seq; b.more {
		b.seq = highest(b.Outputs)
	}
	if r.full && r.hole.to > h.told {
		b.Hole = &Hole{From: r.hole.from, To: r.hole.to, Notices: r.dropped.notices()}
	}
	return b, len(b.Outputs) > 0 || b.Hole != nil
}

// highest returns the highest number of the shim's sequence among outputs.
func highest(outs []kernels.Output) (seq uint64) {
	for _, out := range outs {
		seq = max(seq, out.Seq)
	}
	return seq
}

// clip ends a batch at the hole: what is behind it has other indices. The caller holds r.mu.
func (b *batch) clip(r *record) {
	if most := r.hole.from - b.First; r.full && r.hole.to > r.hole.from && most > 0 && len(b.Outputs) > most {
		b.Outputs, b.more = b.Outputs[:most], true
	}
}

// pending tells whether there is something to save. The caller holds r.mu.
func (r *record) pending() bool {
	next := r.shelf.saved
	if r.full && next >= r.hole.from {
		next = max(next, r.hole.to)
	}
	return next < r.count || r.full && r.hole.to > r.shelf.told
}

// settled tells whether all of the record is in the store.
func (r *record) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shelf != nil && !r.pending()
}

// endsWith sets the saver's ticket of how the cell ended.
func (r *record) endsWith(ticket uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shelf.end = ticket
}

// owed tells whether something of the cell is still to be saved.
func (r *record) owed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shelf != nil && (r.shelf.marked || r.shelf.saver.owes(r.shelf.end))
}

// savedBatch notes that a batch is in the store, and returns whether there is more.
func (r *record) savedBatch(b batch) (more bool) {
	defer r.dealt(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.shelf
	h.saved = max(h.saved, b.First+len(b.Outputs))
	if b.Hole != nil {
		h.told = b.Hole.To
	}
	r.tidy()
	h.marked = r.pending()
	return h.marked
}

// dealt tells the shim that a batch was dealt with: it is in the store, or stays in memory because the store does not
// work. Whoever waits for room goes on.
func (r *record) dealt(b batch) {
	r.mu.Lock()
	release := r.shelf.release
	r.shelf.hung = false
	if r.shelf.eased != nil {
		close(r.shelf.eased)
		r.shelf.eased = nil
	}
	r.mu.Unlock()
	if release != nil && b.seq > 0 {
		release(b.seq)
	}
}

// unmark notes that nothing more will be saved. The shim need not keep anything for it.
func (r *record) unmark() {
	r.mu.Lock()
	r.shelf.marked = false
	b := batch{seq: r.seq}
	r.mu.Unlock()
	r.dealt(b)
}

// onDealt sets what is to be told which outputs were dealt with.
func (r *record) onDealt(release func(seq uint64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shelf != nil {
		r.shelf.release = release
	}
}

// fetch fills the cursor's page with outputs from the store. When they fell into the hole meanwhile it stays empty. What
// cannot be read is told by a notice in its place.
func (r *record) fetch(c *cursor, want span) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	page, next := r.shelf.saver.read(ctx, r.number, want)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full && c.index >= r.hole.from && c.index < r.hole.to {
		return
	}
	c.page = page
	if len(page) == 0 {
		c.index = next
	}
}

// read reads outputs of a span, at most about fetchBytes of them, and returns the index behind what it has read.
func (s *saver) read(ctx context.Context, number int, want span) (page []StoredOutput, next int) {
	var size int64
	for out, err := range s.store.Outputs(ctx, s.session(), number, want.from) {
		if out.Index >= want.to {
			break
		}
		if err != nil {
			out.Output = unreadable(err)
		}
		page = append(page, out)
		if size += outputSize(out.Output); size > fetchBytes {
			return page, out.Index + 1
		}
	}
	return page, want.to
}

// unreadable is the notice in the place of what the store cannot give back.
func unreadable(err error) kernels.Output {
	text := fmt.Sprintf("output of this cell cannot be read any more: %v", err)
	if fault.KindOf(err) == fault.Internal {
		text = "output of this cell cannot be read any more"
	}
	return kernels.Output{Kind: kernels.OutputNotice, Time: time.Now(), Notice: &kernels.Notice{Incomplete: text}}
}

// part makes the last part of a record, which has been all head, its tail. The caller holds r.mu.
func (r *record) part() {
	r.heads = max(1, len(r.parts)-1)
	r.full, r.hole = true, span{r.count, r.count}
	for _, p := range r.parts[r.heads:] {
		r.hole = span{p.from, p.from}
		r.kept[0] -= p.bytes
		r.kept[1] += p.bytes
	}
}

// squeeze gives up most of a record that nobody asks for any more and that the store has not taken: its beginning and its
// end stay. With a store that works there is nothing to give up.
func (r *record) squeeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shelf == nil || r.unsaved() < maxPart*4 {
		return
	}
	if !r.full {
		r.part()
	}
	for r.heads > 1 && r.shelf.told == 0 && r.parts[r.heads-1].from > r.shelf.saved {
		r.heads--
		r.drop(r.heads)
		r.hole.from = r.parts[r.heads-1].to
	}
	for len(r.parts)-r.heads > 1 {
		r.drop(r.heads)
	}
	r.hole.to = r.count
	if len(r.parts) > r.heads {
		r.hole.to = r.parts[r.heads].from
	}
	r.shelf.mark(r)
}
