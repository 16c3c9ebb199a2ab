package sessions

import (
	"context"
	"iter"

	"cellblock/kernels"
)

// Numbered is an output with its place among all that its cell produced.
type Numbered struct {
	kernels.Output
	// Index counts the cell's outputs from 0. A notice that tells of outputs that were not kept has the index of what
	// comes behind it.
	Index int
	// Next is where to go on behind this output.
	Next int
}

// OutputsFrom yields the outputs from an index on, as Outputs does from the first: an index is some earlier output's Next,
// so that who reads in several goes misses nothing and gets nothing twice. When ctx ends, what is there by then is
// yielded before the error; so a context that has ended already reads what there is without waiting. Where from is among
// outputs that are not kept any more, the notice counts all of those.
func (e *Execution) OutputsFrom(ctx context.Context, from int) iter.Seq2[Numbered, error] {
	return func(yield func(Numbered, error) bool) {
		at, end := e.record.cursorAt(from), -1
		for {
			if end < 0 && ctx.Err() != nil {
				end = e.record.length()
			}
			if end >= 0 && at.index >= end && len(at.notes) == 0 && !e.over() {
				yield(Numbered{Index: at.index, Next: at.index}, context.Cause(ctx))
				return
			}
			out, ok, changed := e.record.next(&at)
			switch {
			case ok:
				if !yield(numbered(out, at), nil) {
					return
				}
				continue
			case changed == nil:
				if err := e.failure(); err != nil {
					yield(Numbered{Index: at.index, Next: at.index}, err)
				}
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// numbered is an output that was just read at a cursor.
func numbered(out kernels.Output, at cursor) Numbered {
	n := Numbered{Output: out, Index: at.index - 1, Next: at.index}
	if out.Kind == kernels.OutputNotice && at.noted {
		n.Index = at.index
	}
	return n
}

// LateFrom returns what the cell has produced after its own end, from an index on (see OutputsFrom); nothing while it
// has not ended.
func (e *Execution) LateFrom(from int) []Numbered {
	if !e.over() {
		return nil
	}
	var late []Numbered
	for at := e.record.lateFrom(from); ; {
		out, ok, _ := e.record.next(&at)
		if !ok {
			return late
		}
		late = append(late, numbered(out, at))
	}
}

// SoFar yields the outputs that there are now, from an index on (see OutputsFrom), what came after the cell's end last. It waits for
// nothing, and why the cell failed, if it did, is not among them.
func (e *Execution) SoFar(from int) iter.Seq[Numbered] {
	return func(yield func(Numbered) bool) {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		for out, err := range e.OutputsFrom(now, from) {
			if err != nil {
				break
			}
			if from = out.Next; !yield(out) {
				return
			}
		}
		for _, out := range e.LateFrom(from) {
			if !yield(out) {
				return
			}
		}
	}
}

func (e *Execution) over() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
