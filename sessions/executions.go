package sessions

import (
	"context"
	"slices"
	"time"

	"cellblock/internal/fault"
)

// ExecutionInfo describes one cell of a session without its outputs.
type ExecutionInfo struct {
	// Number counts the cells of the session, from 1.
	Number int
	Code   string
	Phase  Phase
	// Position is how many cells come before one that is queued.
	Position int
	// Generation is that of the kernel that ran the cell; 0 while it is queued.
	Generation int
	// Started is zero for a cell that does not run yet, or never ran.
	Started time.Time
	// Duration is how long the cell has been running, or ran.
	Duration time.Duration
	// Result is how the cell ended, and Err why it never ran; both are valid in PhaseEnded only.
	Result Result
	Err    error
}

// Info describes the cell as it is now.
func (e *Execution) Info() ExecutionInfo {
	position := e.Position()
	e.mu.Lock()
	defer e.mu.Unlock()
	info := ExecutionInfo{
		Number: e.number, Code: e.code, Phase: e.phase, Generation: e.generation, Started: e.started,
		Result: e.result, Err: e.err, Duration: e.result.Duration,
	}
	switch e.phase {
	case PhaseQueued:
		info.Position = position
	case PhaseRunning:
		info.Duration = time.Since(e.started)
	}
	return info
}

// Language is the language of the session that the cell runs in.
func (e *Execution) Language() string { return e.session.language }

// Execution returns one cell of an owner's session by its number. It is NotFound when the session does not run, has not
// had so many cells, or keeps the cell no more.
func (m *Manager) Execution(_ context.Context, o Owner, id string, number int) (*Execution, error) {
	s, err := m.use(o, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.kept() {
		if e.number == number {
			return e, nil
		}
	}
	if number < 1 || number > s.cells {
		return nil, fault.New(fault.NotFound, "session %q has no cell %d: it has had %d", id, number, s.cells).
			WithHint("list_executions names the ones there are")
	}
	return nil, fault.New(fault.NotFound, "what cell %d of session %q produced is not kept any more", number, id).
		WithHint("list_executions names the ones there are; let code write what must last into a file")
}

// Executions describes the last cells of an owner's session that are kept, oldest first, and at most so many. It is
// NotFound when the session does not run.
func (m *Manager) Executions(_ context.Context, o Owner, id string, most int) ([]ExecutionInfo, error) {
	s, err := m.use(o, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	kept := s.kept()
	s.mu.Unlock()
	infos := []ExecutionInfo{}
	for _, e := range kept[max(0, len(kept)-most):] {
		infos = append(infos, e.Info())
	}
	return infos, nil
}

// use is find for a call that shows that somebody still wants the session.
func (m *Manager) use(o Owner, id string) (*session, error) {
	s, err := m.find(o, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.lastUsed = true, time.Now()
	return s, nil
}

// kept returns the cells whose outputs are kept, by number. The caller holds s.mu.
func (s *session) kept() []*Execution {
	kept := slices.Clone(s.recent)
	if s.running != nil {
		kept = append(kept, s.running)
	}
	kept = append(kept, s.queue...)
	slices.SortFunc(kept, func(a, b *Execution) int { return a.number - b.number })
	return kept
}
