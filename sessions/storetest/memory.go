// Package storetest has what tests of stores, and of whoever uses one, need: the suite that every sessions.Store passes,
// and one in memory that can be told to fail.
package storetest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// Memory is a sessions.Store in memory. It keeps everything; it is for tests.
type Memory struct {
	disk   *memoryDisk
	holder int

	mu      sync.Mutex
	failure error
	commits int
	gate    chan struct{} // while it is set, commits wait for it to be closed
}

// memoryDisk is what several Memory share, as processes share a folder.
type memoryDisk struct {
	mu       sync.Mutex
	sessions map[sessions.SessionRef]*memorySession
	last     sessions.SessionRef
	holders  map[int]bool
}

type memorySession struct {
	sessions.StoredSession
	holder      int
	generations map[int]*sessions.StoredGeneration
	executions  map[int]*memoryExecution
}

type memoryExecution struct {
	sessions.StoredExecution
	outputs map[int]sessions.StoredOutput
}

var _ sessions.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return (&Memory{disk: &memoryDisk{sessions: map[sessions.SessionRef]*memorySession{}, holders: map[int]bool{}}}).Another()
}

// Another returns the store of one more process that uses the same disk.
func (m *Memory) Another() *Memory {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	n := &Memory{disk: m.disk, holder: len(m.disk.holders) + 1}
	m.disk.holders[n.holder] = true
	return n
}

// Fail makes all that writes fail with err from now on; nil mends it.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = err
}

// Block makes commits wait until the returned function is called.
func (m *Memory) Block() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gate := make(chan struct{})
	m.gate = gate
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.gate = nil
		m.mu.Unlock()
		close(gate)
	})
}

// Commits counts the commits that succeeded.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

// Kill ends the store as a killed process would: its claims are left, and count for nothing.
func (m *Memory) Kill() {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.disk.holders[m.holder] = false
}

// ready waits at the gate and returns the failure that was ordered.
func (m *Memory) ready(ctx context.Context) error {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return m.Health()
}

// Health implements sessions.Store.
func (m *Memory) Health() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failure
}

// Close implements sessions.Store.
func (m *Memory) Close() error {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for _, s := range m.disk.sessions {
		if s.holder == m.holder {
			s.holder = 0
		}
	}
	return nil
}

// Open implements sessions.Store.
func (m *Memory) Open(ctx context.Context, want sessions.StoredSession) (sessions.StoredSession, error) {
	if err := m.ready(ctx); err != nil {
		return sessions.StoredSession{}, err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	s := m.disk.find(want.Owner, want.ID)
	if s == nil {
		s = m.disk.add(want)
	} else if s.holder != m.holder && m.disk.holders[s.holder] {
		return sessions.StoredSession{}, fault.New(fault.Conflict, "session %q is in use by another process", want.ID)
	}
	before := s.StoredSession
	before.Held = s.holder == m.holder
	s.holder, s.Language, s.Profile, s.Image, s.Closed, s.Why = m.holder, want.Language, want.Profile, want.Image, time.Time{}, ""
	return before, nil
}

func (d *memoryDisk) add(want sessions.StoredSession) *memorySession {
	d.last++
	s := &memorySession{
		StoredSession: sessions.StoredSession{
			Ref: d.last, Owner: want.Owner, ID: want.ID, Language: want.Language, Profile: want.Profile, Image: want.Image,
			Created: want.Created.UTC(), Used: time.Now().UTC(),
		},
		generations: map[int]*sessions.StoredGeneration{}, executions: map[int]*memoryExecution{},
	}
	d.sessions[d.last] = s
	return s
}

func (d *memoryDisk) find(o sessions.Owner, id string) *memorySession {
	for _, s := range d.sessions {
		if s.Owner == o && s.ID == id {
			return s
		}
	}
	return nil
}

// Commit implements sessions.Store.
func (m *Memory) Commit(ctx context.Context, ref sessions.SessionRef, changes ...sessions.Change) error {
	if err := m.ready(ctx); err != nil {
		return err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	s := m.disk.sessions[ref]
	if s == nil || s.holder != m.holder {
		return fault.New(fault.Conflict, "the session was deleted or taken over")
	}
	changed := s.clone()
	for _, change := range changes {
		if err := changed.apply(change); err != nil {
			return err
		}
	}
	m.disk.sessions[ref] = changed
	m.mu.Lock()
	m.commits++
	m.mu.Unlock()
	return nil
}

// clone copies a session, so that changes can be made all or none. What lies behind is copied when it is changed.
func (s *memorySession) clone() *memorySession {
	c := *s
	c.generations, c.executions = maps.Clone(s.generations), maps.Clone(s.executions)
	return &c
}

func (s *memorySession) generation(n int) *sessions.StoredGeneration {
	g := s.generations[n]
	if g == nil {
		return &sessions.StoredGeneration{}
	}
	changed := *g
	s.generations[n] = &changed
	return &changed
}

func (s *memorySession) execution(n int) (*memoryExecution, error) {
	e := s.executions[n]
	if e == nil {
		return nil, fault.New(fault.Conflict, "there is no execution %d", n)
	}
	changed := *e
	changed.outputs = maps.Clone(e.outputs)
	s.executions[n] = &changed
	return &changed, nil
}

// use notes that something of the session's was in use at a time.
func (s *memorySession) use(at time.Time) {
	if at.After(s.Used) {
		s.Used = at.UTC()
	}
}

func (s *memorySession) apply(change sessions.Change) error {
	switch change := change.(type) {
	case sessions.GenerationBegan:
		s.use(change.Started)
		if s.generations[change.Number] != nil {
			return fault.New(fault.Conflict, "generation %d is there", change.Number)
		}
		s.generations[change.Number] = &sessions.StoredGeneration{Number: change.Number, Ref: change.Ref, Started: change.Started.UTC()}
		s.Generations = max(s.Generations, change.Number)
	case sessions.GenerationEnded:
		if g := s.generation(change.Number); g.Ended.IsZero() {
			g.Ended, g.Why = change.Ended.UTC(), change.Why
		}
	case sessions.ExecutionQueued:
		return s.queued(change)
	case sessions.WorkspaceGiven:
		s.Workspace = change.Name
	case sessions.SessionClosed:
		s.Closed, s.Why, s.holder = change.Closed.UTC(), change.Why, 0
	default:
		return s.applyExecution(change)
	}
	return nil
}

func (s *memorySession) queued(c sessions.ExecutionQueued) error {
	if s.executions[c.Number] != nil {
		return fault.New(fault.Conflict, "execution %d is there", c.Number)
	}
	s.use(c.Queued)
	s.executions[c.Number] = &memoryExecution{StoredExecution: sessions.StoredExecution{
		Number: c.Number, MsgID: c.MsgID, Code: c.Code, File: c.File, Args: c.Args, Caller: c.Caller, Timeout: c.Timeout, Restores: c.Restores,
		Queued: c.Queued.UTC(),
	}, outputs: map[int]sessions.StoredOutput{}}
	s.Executions = max(s.Executions, c.Number)
	return nil
}

func (s *memorySession) applyExecution(change sessions.Change) error {
	switch change := change.(type) {
	case sessions.ExecutionBegan:
		s.use(change.Started)
		e, err := s.execution(change.Number)
		if err == nil {
			e.Generation, e.Started, e.Preamble = change.Generation, change.Started.UTC(), change.Preamble
		}
		return err
	case sessions.ExecutionEnded:
		s.use(change.Ended)
		e, err := s.execution(change.Number)
		if err == nil {
			e.Ended, e.Result, e.Failure, e.Own = change.Ended.UTC(), change.Result, change.Failure, change.Own
		}
		return err
	case sessions.OutputsKept:
		s.use(time.Now())
		e, err := s.execution(change.Number)
		if err != nil {
			return err
		}
		return s.kept(e, change)
	}
	return fmt.Errorf("unknown change %T", change)
}

func (s *memorySession) kept(e *memoryExecution, c sessions.OutputsKept) error {
	for i, out := range c.Outputs {
		if _, taken := e.outputs[c.First+i]; taken {
			return fault.New(fault.Conflict, "output %d is there", c.First+i)
		}
		e.outputs[c.First+i] = sessions.StoredOutput{Index: c.First + i, Output: out}
		if e.Ended.IsZero() {
			g := s.generation(e.Generation)
			g.Seq = max(g.Seq, out.Seq)
		}
	}
	e.StoredExecution.Outputs = max(e.StoredExecution.Outputs, c.First+len(c.Outputs))
	if h := c.Hole; h != nil {
		e.StoredExecution.Outputs = max(e.StoredExecution.Outputs, h.To)
		for i := h.From; i < h.To; i++ {
			delete(e.outputs, i)
		}
		for i, notice := range h.Notices {
			e.outputs[h.From+i] = sessions.StoredOutput{Index: h.From + i, Output: notice}
		}
	}
	s.Bytes -= e.Bytes
	e.Bytes = 0
	for _, out := range e.outputs {
		e.Bytes += int64(len(out.Output.Text)) + 16
	}
	s.Bytes += e.Bytes
	return nil
}

// Delete implements sessions.Store.
func (m *Memory) Delete(ctx context.Context, o sessions.Owner, id string) error {
	if err := m.ready(ctx); err != nil {
		return err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	s := m.disk.find(o, id)
	switch {
	case s == nil:
		return nil
	case s.holder != m.holder && m.disk.holders[s.holder]:
		return fault.New(fault.Conflict, "session %q is in use by another process", id)
	}
	delete(m.disk.sessions, s.Ref)
	return nil
}
