package sessions

import (
	"cellblock/kernels"
)

// cursor is one reader's place in a record.
type cursor struct {
	index  int   // of the next output, in the order of append
	passed tally // what of the outputs behind the head the reader got or was told that he missed
	notes  []kernels.Output
	noted  bool // what was read last is one of notes
	late   bool // reads what was appended after the end, and only that
	// page is what was read from the store and not handed out.
	page []StoredOutput
}

// cursorAt returns a cursor for a reader who has had the outputs before an index. Of those that are not kept any more it
// is not known which he had: he is told of all of them. So he is of up to a part more, when what he goes on with falls
// into the hole later and is not in memory now.
func (r *record) cursorAt(index int) cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := cursor{index: max(0, min(index, r.count))}
	if !r.full || c.index <= r.hole.from {
		return c
	}
	if c.index < r.hole.to {
		c.index = r.hole.from
		return c
	}
	c.passed = r.dropped
	for _, p := range r.parts[r.heads:] {
		switch {
		case p.to <= c.index:
			c.passed = c.passed.plus(p.sum)
		case p.from < c.index && p.outs != nil:
			for _, out := range p.outs[:c.index-p.from] {
				c.passed.add(out, 1)
			}
		}
	}
	return c
}

// lateFrom returns a cursor for what was appended after the end, from an index on.
func (r *record) lateFrom(index int) cursor {
	c := r.cursorAt(max(index, r.own()))
	c.late = true
	return c
}

// next returns the output at the cursor and moves on. Where there is none yet it returns false and the channel that is
// closed at the next change; a nil channel means that none will come. It may read from the store.
func (r *record) next(c *cursor) (kernels.Output, bool, <-chan struct{}) {
	for {
		out, ok, changed, missing := r.look(c)
		if missing == nil {
			return out, ok, changed
		}
		r.fetch(c, *missing)
	}
}

// look is next in memory. Where the output is in the store only, it returns which are to be fetched.
func (r *record) look(c *cursor) (out kernels.Output, ok bool, changed <-chan struct{}, missing *span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.count
	if r.ended && !c.late {
		last = r.endCount
	}
	if r.full && c.index >= r.hole.from && c.index < min(r.hole.to, last) && len(c.page) == 0 {
		c.notes = r.dropped.minus(c.passed).notices()
		c.passed = r.dropped
		c.index = r.hole.to
	}
	switch {
	case len(c.notes) > 0:
		note := c.notes[0]
		c.notes, c.noted = c.notes[1:], true
		return note, true, nil, nil
	case len(c.page) > 0:
		return r.turn(c), true, nil, nil
	case c.index < last:
		p := r.partOf(c.index)
		if p.outs == nil {
			return out, false, nil, &span{c.index, min(p.to, last)}
		}
		return r.take(c, p.outs[c.index-p.from], c.index), true, nil, nil
	case r.ended:
		return out, false, nil, nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return out, false, r.changed, nil
}

// turn takes the next output from the cursor's page.
func (r *record) turn(c *cursor) kernels.Output {
	next := c.page[0]
	c.page = c.page[1:]
	return r.take(c, next.Output, next.Index)
}

// take moves a cursor behind an output at an index. The caller holds r.mu.
func (r *record) take(c *cursor, out kernels.Output, index int) kernels.Output {
	if r.full && index >= r.hole.from {
		c.passed.add(out, 1)
	}
	c.index = index + 1
	c.noted = false
	return out
}

// partOf returns the part that an index is in. It must be kept. The caller holds r.mu.
func (r *record) partOf(index int) *part {
	low, high := 0, len(r.parts)-1
	for low < high {
		middle := (low + high) / 2
		if r.parts[middle].to <= index {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return r.parts[low]
}
