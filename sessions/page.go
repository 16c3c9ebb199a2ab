package sessions

import (
	"context"
	"iter"
	"slices"

	"cellblock/kernels"
)

// ExecutionPage describes the cells of an owner's session with numbers from one on, oldest first and at most so many, as far as they
// are kept, in memory or in the store. It is NotFound when there is no such session.
func (m *Manager) ExecutionPage(ctx context.Context, o Owner, id string, from, limit int) ([]ExecutionInfo, error) {
	cells, past, err := m.cellsAndPast(ctx, m.find, o, id)
	if err != nil {
		return nil, err
	}
	return m.page(ctx, cells, past, from, limit)
}

// cellsAndPast returns what there is of an owner's session: its cells in memory, and what the store has of it, whose Ref is 0 where that has
// nothing.
func (m *Manager) cellsAndPast(ctx context.Context, find finder, o Owner, id string) (cells []*Execution, past StoredSession, err error) {
	s, err := find(ctx, o, id)
	if err == nil {
		cells = s.inMemory()
	}
	past, storeErr := m.stored(ctx, o, id)
	switch {
	case err != nil && storeErr != nil:
		return nil, StoredSession{}, nowhere(err, storeErr)
	case storeErr != nil:
		return cells, StoredSession{}, nil
	}
	past.Held = past.Held && err != nil // what this process's session has let go of has ended
	return cells, past, nil
}

// page describes those of the cells that are kept which have numbers from one on, at most so many.
func (m *Manager) page(ctx context.Context, cells []*Execution, past StoredSession, from, limit int) ([]ExecutionInfo, error) {
	in := func(number int) bool { return number >= from && number < from+limit }
	infos, known := []ExecutionInfo{}, map[int]bool{}
	for _, e := range cells {
		if in(e.number) {
			infos, known[e.number] = append(infos, e.Info()), true
		}
	}
	if past.Ref != 0 && len(infos) < limit {
		stored, err := m.cfg.Store.Executions(ctx, past.Ref, from, limit, 0)
		if err != nil {
			return nil, err
		}
		for _, e := range stored {
			if in(e.Number) && !known[e.Number] {
				infos = append(infos, storedInfo(past, e))
			}
		}
	}
	slices.SortFunc(infos, func(a, b ExecutionInfo) int { return a.Number - b.Number })
	return infos, nil
}

// ExecutionsFrom returns the cells of an owner's session with numbers from one on, oldest first and at most so many: those that Execution
// returns, read at once, and none behind those whose code has so many bytes together that it had to be read; 0: however many. It is
// NotFound when there is no such session.
func (m *Manager) ExecutionsFrom(ctx context.Context, o Owner, id string, from, limit int, code int64) ([]*Execution, error) {
	in := func(number int) bool { return number >= from && number < from+limit }
	var all []*Execution
	s, err := m.read(ctx, o, id)
	if err == nil {
		all = slices.DeleteFunc(s.inMemory(), func(e *Execution) bool { return !in(e.number) })
	}
	if len(all) == limit && err == nil {
		return all, nil
	}
	past, storeErr := m.stored(ctx, o, id)
	switch {
	case storeErr != nil && err != nil:
		return nil, nowhere(err, storeErr)
	case storeErr != nil:
		return all, nil
	}
	past.Held = past.Held && err != nil // what this process's session has let go of has ended
	stored, err := m.cfg.Store.Executions(ctx, past.Ref, from, limit, code)
	read := int64(0)
	for _, e := range stored {
		if read += int64(len(e.Code)); code > 0 && read >= code { // those in memory behind it come when one goes on
			all = slices.DeleteFunc(all, func(known *Execution) bool { return known.number > e.Number })
		}
		if !in(e.Number) || slices.ContainsFunc(all, func(known *Execution) bool { return known.number == e.Number }) {
			continue
		}
		if restored, err := m.restore(past, e, s); err == nil {
			all = append(all, restored)
		}
	}
	slices.SortFunc(all, func(a, b *Execution) int { return a.number - b.number })
	return all, err
}

// FirstExecution returns the number of the first cell of an owner's session that is kept, in memory or in the store, 0 where none is:
// of a session that is old the first ones have been dropped. It is NotFound when there is no such session.
func (m *Manager) FirstExecution(ctx context.Context, o Owner, id string) (first int, err error) {
	cells, past, err := m.cellsAndPast(ctx, m.find, o, id)
	if err != nil {
		return 0, err
	}
	if len(cells) > 0 {
		first = cells[0].number
	}
	if past.Ref == 0 {
		return first, nil
	}
	stored, err := m.cfg.Store.Executions(ctx, past.Ref, 1, 1, 0)
	if len(stored) > 0 && (first == 0 || stored[0].Number < first) {
		first = stored[0].Number
	}
	return first, err
}

// OutputAt returns the output of an index if it is kept, else the notice that tells why it is not, if there is one. It does not wait
// for what has not come yet.
func (e *Execution) OutputAt(index int) (out kernels.Output, ok bool) {
	for next := range e.SoFar(index) {
		switch {
		case next.Kind != kernels.OutputNotice && next.Index == index:
			return next.Output, true
		case next.Kind != kernels.OutputNotice:
			return out, false
		case out.Notice == nil:
			out = next.Output
		}
	}
	return out, false
}

// OutputQuery says which outputs of a session are looked for.
type OutputQuery struct {
	// Kind is theirs; empty: any.
	Kind kernels.OutputKind
	// From and To are the numbers of the first cell and of the last.
	From, To int
	// Size is how large they are at least, in bytes, as they are stored.
	Size int64
	// Limit is how many are wanted, the last ones.
	Limit int
}

// FoundOutput is an output with its place in a session.
type FoundOutput struct {
	Number int
	StoredOutput
}

// FindOutputs yields the outputs of a session that a query asks for, the last first. It finds those that are stored: nothing without a
// Store. What the store cannot read is left out; an error is the last that is yielded, NotFound when the session is not stored.
func (m *Manager) FindOutputs(ctx context.Context, o Owner, id string, q OutputQuery) iter.Seq2[FoundOutput, error] {
	return func(yield func(FoundOutput, error) bool) {
		if m.cfg.Store == nil {
			return
		}
		past, err := m.stored(ctx, o, id)
		if err != nil {
			yield(FoundOutput{}, err)
			return
		}
		for out, err := range m.cfg.Store.FindOutputs(ctx, past.Ref, q) {
			if ctx.Err() != nil {
				yield(FoundOutput{}, context.Cause(ctx))
				return
			}
			if err == nil && !yield(out, nil) {
				return
			}
		}
	}
}
