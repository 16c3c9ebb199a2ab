package storetest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// Session implements sessions.Store.
func (m *Memory) Session(_ context.Context, o sessions.Owner, id string) (sessions.StoredSession, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	s := m.disk.find(o, id)
	if s == nil {
		return sessions.StoredSession{}, fault.New(fault.NotFound, "there is no session %q", id)
	}
	return m.disk.describe(s), nil
}

func (d *memoryDisk) describe(s *memorySession) sessions.StoredSession {
	described := s.StoredSession
	described.Held = d.holders[s.holder]
	return described
}

// Sessions implements sessions.Store.
func (m *Memory) Sessions(_ context.Context, o sessions.Owner) (all []sessions.StoredSession, _ error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for _, s := range m.disk.sessions {
		if s.Owner == o {
			described := m.disk.describe(s)
			if e, err := s.execution(s.Executions); err == nil {
				described.Last = sessions.StoredCell{Code: e.Code, File: e.File, Args: e.Args, Caller: e.Caller}
			}
			all = append(all, described)
		}
	}
	slices.SortFunc(all, func(a, b sessions.StoredSession) int { return b.Used.Compare(a.Used) })
	return all, nil
}

// Unclosed implements sessions.Store.
func (m *Memory) Unclosed(ctx context.Context, o sessions.Owner) ([]sessions.StoredSession, error) {
	all, err := m.Sessions(ctx, o)
	return slices.DeleteFunc(all, func(s sessions.StoredSession) bool { return !s.Closed.IsZero() }), err
}

// Closed implements sessions.Store.
func (m *Memory) Closed(ctx context.Context, o sessions.Owner, without sessions.Exclusion, limit int) (n int, last []sessions.StoredName, err error) {
	all, err := m.Sessions(ctx, o)
	for _, s := range all {
		if s.Closed.IsZero() || s.Executions == 0 || slices.Contains(without.IDs, s.ID) || slices.Contains(without.Profiles, s.Profile) {
			continue
		}
		if n++; n <= limit {
			last = append(last, sessions.StoredName{ID: s.ID, Used: s.Used})
		}
	}
	return n, last, err
}

// session returns one by its Ref, an empty one if it was deleted.
func (m *Memory) session(ref sessions.SessionRef) *memorySession {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if s := m.disk.sessions[ref]; s != nil {
		return s
	}
	return &memorySession{}
}

// Generations implements sessions.Store.
func (m *Memory) Generations(_ context.Context, ref sessions.SessionRef) (all []sessions.StoredGeneration, _ error) {
	s := m.session(ref)
	for _, n := range slices.Sorted(maps.Keys(s.generations)) {
		all = append(all, *s.generations[n])
	}
	return all, nil
}

// Running implements sessions.Store.
func (m *Memory) Running(context.Context) (all []sessions.StoredKernel, _ error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for _, s := range m.disk.sessions {
		if g := s.generations[s.StoredSession.Generations]; s.Closed.IsZero() && g != nil && g.Ended.IsZero() {
			all = append(all, sessions.StoredKernel{Session: m.disk.describe(s), Generation: *g})
		}
	}
	return all, nil
}

// Images implements sessions.Store.
func (m *Memory) Images(context.Context) (map[string]time.Time, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	all := map[string]time.Time{}
	for _, s := range m.disk.sessions {
		if s.Closed.IsZero() && s.Image != "" && s.Used.After(all[s.Image]) {
			all[s.Image] = s.Used
		}
	}
	return all, nil
}

// Executions implements sessions.Store.
func (m *Memory) Executions(_ context.Context, ref sessions.SessionRef, from, limit int, code int64) (all []sessions.StoredExecution, _ error) {
	s, read := m.session(ref), int64(0)
	for _, n := range slices.Sorted(maps.Keys(s.executions)) {
		if n < from || len(all) >= limit {
			continue
		}
		e := s.executions[n].StoredExecution
		all = append(all, e)
		if read += int64(len(e.Code)); code > 0 && read >= code {
			break
		}
	}
	return all, nil
}

// Unended implements sessions.Store.
func (m *Memory) Unended(_ context.Context, ref sessions.SessionRef) (all []sessions.StoredExecution, _ error) {
	s := m.session(ref)
	for _, n := range slices.Sorted(maps.Keys(s.executions)) {
		if e := s.executions[n].StoredExecution; e.Ended.IsZero() {
			all = append(all, e)
		}
	}
	return all, nil
}

// Execution implements sessions.Store.
func (m *Memory) Execution(_ context.Context, ref sessions.SessionRef, number int) (sessions.StoredExecution, error) {
	e := m.session(ref).executions[number]
	if e == nil {
		return sessions.StoredExecution{}, fault.New(fault.NotFound, "there is no execution %d", number)
	}
	return e.StoredExecution, nil
}

// Outputs implements sessions.Store.
func (m *Memory) Outputs(_ context.Context, ref sessions.SessionRef, number, from int) iter.Seq2[sessions.StoredOutput, error] {
	return func(yield func(sessions.StoredOutput, error) bool) {
		e := m.session(ref).executions[number]
		if e == nil {
			return
		}
		for _, i := range slices.Sorted(maps.Keys(e.outputs)) {
			if i >= from && !yield(e.outputs[i], nil) {
				return
			}
		}
	}
}

// FindOutputs implements sessions.Store.
func (m *Memory) FindOutputs(_ context.Context, ref sessions.SessionRef, q sessions.OutputQuery) iter.Seq2[sessions.FoundOutput, error] {
	return func(yield func(sessions.FoundOutput, error) bool) {
		left := q.Limit
		for n := q.To; n >= q.From; n-- {
			e := m.session(ref).executions[n]
			if e == nil {
				continue
			}
			for _, i := range slices.Backward(slices.Sorted(maps.Keys(e.outputs))) {
				out := e.outputs[i]
				if q.Kind != "" && out.Output.Kind != q.Kind || dataSize(out.Output) < q.Size {
					continue
				}
				if left--; left < 0 || !yield(sessions.FoundOutput{Number: n, StoredOutput: out}, nil) {
					return
				}
			}
		}
	}
}

func dataSize(out kernels.Output) (n int64) {
	n = int64(len(out.Text))
	for _, value := range out.Data {
		n += int64(len(value))
	}
	return n
}

// Usage implements sessions.Store.
func (m *Memory) Usage(context.Context) (u sessions.Usage, _ error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for _, s := range m.disk.sessions {
		u.Sessions++
		u.Executions += len(s.executions)
		u.Bytes += s.Bytes
	}
	u.Disk = u.Bytes + int64(u.Executions) // a cell takes more than its outputs
	return u, nil
}
