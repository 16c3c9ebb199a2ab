package sessions

import (
	"context"
	"slices"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// ExecutionInfo describes one cell of a session without its outputs.
type ExecutionInfo struct {
	// Number counts the cells of the session, from 1.
	Number int
	Code   string
	// File is the path of the script in the workspace that Code runs; empty for a cell of its own.
	File string
	// Args are the script's arguments, as a shell's words, shortened if they are long.
	Args string
	// Restores is the number of the cell that this one ran again; 0 for a cell of its own.
	Restores int
	// Caller says who asked; see Request.Caller.
	Caller string
	Phase  Phase
	// Position is how many cells come before one that is queued; Crowded tells that it waits for those of other sessions, and
	// Starting that it waits for its kernel to come up.
	Position int
	Crowded  bool
	Starting bool
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
	position, crowded, starting := e.Position(), e.Crowded(), e.starting()
	e.mu.Lock()
	defer e.mu.Unlock()
	info := ExecutionInfo{
		Number: e.number, Code: e.code, File: e.file, Args: e.args, Restores: e.restores, Caller: e.caller, Phase: e.phase,
		Generation: e.generation, Started: e.started,
		Result: e.result, Err: e.err, Duration: e.result.Duration,
	}
	switch e.phase {
	case PhaseQueued:
		info.Position, info.Crowded, info.Starting = position, crowded, starting
	case PhaseRunning:
		info.Duration = elapsed(e.since)
	}
	return info
}

// Title is what people are told that the cell does: its code, or which script that runs, with which arguments, as one would type them.
func (i ExecutionInfo) Title() string {
	if i.File == "" {
		return i.Code
	}
	return strings.TrimRight("run "+words.Shell(i.File)+" "+i.Args, " ")
}

// Produced is how many outputs the cell has produced by now, also after its end.
func (e *Execution) Produced() int { return e.record.length() }

// Language is the language of the session that the cell runs in.
func (e *Execution) Language() string { return e.choice.Language }

// Choice is what the session that the cell runs in is made of.
func (e *Execution) Choice() Choice { return e.choice }

// Execution returns one cell of an owner's session by its number, from the store when the session does not run or has let
// go of it. It is NotFound when there is no such session, it has not had so many cells, or the cell is kept no more;
// Conflict while the cell runs in another process.
func (m *Manager) Execution(ctx context.Context, o Owner, id string, number int) (*Execution, error) {
	s, err := m.read(ctx, o, id)
	if err == nil {
		if e := s.execution(number); e != nil {
			return e, nil
		}
	}
	past, storeErr := m.stored(ctx, o, id)
	past.Held = past.Held && err != nil // what this process's session has let go of has ended
	switch {
	case storeErr == nil:
		return m.recall(ctx, past, number, s)
	case fault.KindOf(storeErr) != fault.NotFound:
		return nil, storeErr
	case err != nil:
		return nil, err
	}
	return nil, notKept(id, number, s.info().Executions)
}

// execution returns a cell that is kept in memory, nil if it is not.
func (s *session) execution(number int) *Execution {
	for _, e := range s.inMemory() {
		if e.number == number {
			return e
		}
	}
	return nil
}

// inMemory is kept for who does not hold s.mu.
func (s *session) inMemory() []*Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept()
}

// recall returns a cell from the store; see restore.
func (m *Manager) recall(ctx context.Context, past StoredSession, number int, s *session) (*Execution, error) {
	e, err := m.cfg.Store.Execution(ctx, past.Ref, number)
	if fault.KindOf(err) == fault.NotFound {
		return nil, notKept(past.ID, number, past.Executions)
	}
	if err != nil {
		return nil, err
	}
	return m.restore(past, e, s)
}

// Executions describes the last cells of an owner's session that are kept, in memory or in the store, oldest first, and
// at most so many. It is NotFound when there is no such session.
func (m *Manager) Executions(ctx context.Context, o Owner, id string, most int) ([]ExecutionInfo, error) {
	cells, past, err := m.cellsAndPast(ctx, m.read, o, id)
	if err != nil {
		return nil, err
	}
	last := past.Executions
	if n := len(cells); n > 0 {
		last = cells[n-1].number
	}
	most = min(most, last)
	return m.page(ctx, cells, past, last-most+1, most)
}

// storedInfo describes a cell in the store.
func storedInfo(past StoredSession, e StoredExecution) ExecutionInfo {
	info := ExecutionInfo{
		Number: e.Number, Code: e.Code, File: e.File, Args: e.Args, Restores: e.Restores, Caller: e.Caller, Phase: PhaseEnded, Generation: e.Generation,
		Started: e.Started,
	}
	switch {
	case e.Ended.IsZero() && past.Held && e.Started.IsZero():
		info.Phase = PhaseQueued
		return info
	case e.Ended.IsZero() && past.Held:
		info.Phase, info.Duration = PhaseRunning, elapsed(e.Started)
		return info
	case e.Ended.IsZero():
		e = leftOpen(e, past.Used)
	}
	info.Result, info.Duration = e.Result, e.Result.Duration
	if e.Failure != nil {
		info.Err = e.Failure
	}
	return info
}

// use is find for a call that shows that somebody still wants the session.
func (m *Manager) use(ctx context.Context, o Owner, id string) (*session, error) {
	s, err := m.find(ctx, o, id)
	if err != nil {
		return nil, err
	}
	if !looks(ctx) {
		s.used()
	}
	return s, nil
}

// read is find for a call that reads what the session has done. Whoever asks for it by its id wants it, but that is no use: the time
// and the place in a list that it shows would be his own look's.
func (m *Manager) read(ctx context.Context, o Owner, id string) (*session, error) {
	s, err := m.find(ctx, o, id)
	if err != nil {
		return nil, err
	}
	if !looks(ctx) {
		s.want()
	}
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
