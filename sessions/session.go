package sessions

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions/workspaces"
)

// key names a session: two owners' "analysis" are two sessions.
type key struct {
	owner Owner
	id    string
}

// workspace names its workspace.
func (k key) workspace() workspaces.Key {
	return workspaces.Key{Owner: workspaces.Owner(k.owner), ID: k.id}
}

// session is one (owner, id). Fields above mu never change; kernel and gauge belong to the runner's goroutine alone.
type session struct {
	manager *Manager
	key     key
	choice  Choice
	log     *slog.Logger
	// after is closed when an earlier session of the same id is gone, so that two kernels never share a workspace.
	after  <-chan struct{}
	ctx    context.Context
	cancel context.CancelCauseFunc
	wake   chan struct{}
	orders chan order
	gone   chan struct{}
	// saver puts what happens into the store; nil without one. opened is closed when cells can be numbered.
	saver  *saver
	opened chan struct{}
	// settled is closed when it is known what became of the kernel and the cells that an earlier process has left.
	settled chan struct{}
	before  *session // the earlier session that after is of

	kernel    *kernel
	begun     uint64   // the saver's ticket of the kernel's beginning; 0 for one that was found again
	found     *adopted // the cell that runs in a kernel that was found again, until it is followed
	untouched bool     // what became of the kernel that an earlier process has left is not known
	untold    bool     // the workspace's label may not tell yet that cells run there
	later     afterwards
	ahead     ahead // of the session, until it has used it
	gauge     gauge
	written   written
	samples   samples // has a lock of its own

	checkpoints checkpoints
	replaced    string // what is told of the last restart
	unsaved     string // why the kernel's variables were not saved, until that is told
	saved       bool   // the next kernel is to load the variables that are saved
	saving      cell   // saves them still, in a session that has ended; nil: nothing does

	mu          sync.Mutex
	minted      bool
	state       State
	generation  int
	cells       int           // ever enqueued
	past        StoredSession // what there was before this session began
	created     time.Time     // when the first of this id began, whatever became of its kernels and images
	lastUsed    time.Time
	born        time.Time // when the kernel that runs now came up
	active      time.Time // when that kernel was last used
	queue       []*Execution
	running     *Execution
	behind      behind
	launched    kernels.Handle // the kernel's that was launched last, for its log
	live        client         // of the kernel that came up last, to be asked what it uses
	records     []*record      // of cells that have ended, in the order in which they did, and may still produce output
	recent      []*Execution   // the last that have ended, by number; the store has those before
	ran         bool           // a cell has reached a kernel
	wanted      bool           // somebody has asked for the session by its id
	news        []string       // told before the next cell
	told        []string       // what the last cell that began was told
	back        *cameBack      // what the kernel that runs now has loaded, until a cell is told; nil: nothing was saved for it
	known       known          // of the news what somebody knows without being told
	loss        string         // why the last kernel that was lost was
	visits      visits
	redo        redo
	filesThere  bool    // the workspace was not empty when the session began
	ending      *ending // set once the session takes no more cells
	deleteFiles bool
	// givenBack tells that the workspace was, or is about to be: whoever takes it up now gives it back himself.
	givenBack bool
	filed     int   // changes of files that no cell has made
	coming    int   // calls that are about to want the kernel
	overfull  int64 // what the workspace holds, in bytes, where that is too much and must be told
	crowded   bool  // its next cell waits for others, of other sessions
	conflict  error // the session is another process's
	endErr    error // what went wrong while ending; valid once gone is closed
}

// ending is why a session ends.
type ending struct {
	kind  fault.Kind
	cause string
	// saves tells that whoever comes next to the id wants the variables, forgets that he is to have none.
	saves, forgets bool
}

func (e *ending) Error() string { return e.cause }

// Info describes a session.
type Info struct {
	ID string
	Choice
	State State
	// Generation counts the kernels that the session has had, Executions its cells.
	Generation, Executions int
	// LastUsed is when anything was last done in the session. What it did can be read without that: its cells, its account, its log. Of
	// the rest, what only reads files does not put off Ends.
	Created, LastUsed time.Time
	// Busy is how long the running cell has been running; 0 when none is.
	Busy time.Duration
	// Queue is how many cells wait.
	Queue int
	// Ends is when its kernel is stopped, if nothing happens before.
	Ends End
	// Back tells that its kernel has variables of the one before, as they were after the cell BackAfter; 0: after its last.
	Back      bool
	BackAfter int
	// NotBack names those that could not be saved or loaded.
	NotBack string
	// Lost says why the session has no kernel, in the words of a sentence's end; empty while it has one.
	Lost string
	// Filed counts the changes of its files that no cell has made, while it runs.
	Filed int
	// Last is the cell that runs, or else the last one that is in memory; nil if none is.
	Last *Execution
}

func (s *session) info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := Info{
		ID: s.key.id, Choice: s.choice, State: s.state, Generation: s.generation, Executions: s.cells,
		Created: s.created, LastUsed: s.lastUsed, Back: s.back != nil && s.back.Back > 0, Queue: len(s.queue), Ends: s.ends(), Filed: s.filed, Last: s.running,
	}
	if info.Back {
		info.BackAfter, info.NotBack = s.back.after, s.back.missing()
	}
	if s.state == Died || s.state == Culled {
		info.Lost = s.loss
	}
	if n := len(s.recent); info.Last == nil && n > 0 {
		info.Last = s.recent[n-1]
	}
	if s.running != nil {
		_, started := s.running.Phase()
		info.Busy = elapsed(started)
	}
	if info.State == "" {
		info.State = Starting
	}
	return info
}

// enqueue puts a cell at the end of the queue. It returns the session's *ending when it takes no more cells.
func (s *session) enqueue(r Request, timeout time.Duration, minted bool) (*Execution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return nil, s.ending
	}
	if most := s.manager.cfg.MaxQueue; most > 0 && len(s.queue) >= most {
		return nil, fault.New(fault.Busy, "session %q has %d cells waiting, the most that one may have", s.key.id, most).
			WithHint("wait for them, use another session_id for work that can run beside it, or interrupt_session")
	}
	if err := s.manager.roomToWait(); err != nil {
		return nil, err
	}
	if s.saver != nil {
		if err := s.saver.room(); err != nil {
			return nil, err
		}
	}
	s.cells++
	s.wanted = s.wanted || !minted
	msgID := fmt.Sprintf("%s-%d", newKernelID(), s.cells)
	e := &Execution{
		session: s, id: s.key.id, choice: s.choice, once: s.profile().Once, number: s.cells, msgID: msgID,
		code: r.Code, file: r.File, args: r.Args, restores: r.restores, restored: r.restored, caller: r.Caller, timeout: timeout, minted: minted, phase: PhaseQueued,
		input:  input{attended: r.Attended},
		record: newRecord(s.manager.cfg.RecordBytes, s.cells, msgID), done: make(chan struct{}), cancelled: make(chan struct{}),
	}
	if s.saver != nil {
		e.record.shelf = &shelf{saver: s.saver}
	}
	s.save(ExecutionQueued{
		Number: e.number, MsgID: e.msgID, Code: e.code, File: e.file, Args: e.args, Caller: r.Caller, Timeout: timeout, Restores: r.restores,
		Queued: time.Now(),
	})
	s.queue = append(s.queue, e)
	s.changed()
	e.count(true)
	s.lastUsed = time.Now()
	s.poke()
	return e, nil
}

// putBack lets the running cell wait again, before all others.
func (s *session) putBack(e *Execution) {
	e.again = true
	e.mu.Lock()
	e.phase, e.started, e.since, e.generation = PhaseQueued, time.Time{}, time.Time{}, 0
	e.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	s.queue = slices.Insert(s.queue, 0, e)
	s.changed()
	e.count(true)
	s.news = append(s.told, s.news...)
}

// poke makes the runner look at the queue.
func (s *session) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// unqueue removes a cell that still waits.
func (s *session) unqueue(e *Execution) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, e)
	if i < 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	e.count(false)
	return true
}

// pop takes the next cell from the queue to run it; nil when none waits.
func (s *session) pop() *Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	e := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	e.count(false)
	s.begins(e)
	s.setState(Busy)
	return e
}

func (s *session) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

func (s *session) position(e *Execution) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, e)
	if i < 0 {
		return 0
	}
	if s.running != nil {
		i++
	}
	return i
}

// failQueue ends every waiting cell with err: they all waited for the same thing.
func (s *session) failQueue(err error) {
	s.mu.Lock()
	failed := s.queue
	s.queue = nil
	for _, e := range failed {
		e.count(false)
	}
	s.mu.Unlock()
	for _, e := range failed {
		s.drop(e, Result{}, err)
	}
}

// drop ends a cell that never ran. It can still be asked for.
func (s *session) drop(e *Execution, result Result, err error) {
	e.finish(result, err) // first: what is kept is read by the runner's goroutine too
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retain(e)
}

// retire ends the session if no cell waits: from then on it takes none.
func (s *session) retire(why *ending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 || s.ending != nil {
		return s.ending != nil
	}
	s.ending = why
	return true
}

// close ends the session, whatever it is doing. It does not wait; gone is closed when nothing of it is left.
func (s *session) close(why *ending, deleteFiles bool) {
	s.mu.Lock()
	if s.ending == nil {
		s.ending = why
	}
	s.deleteFiles = s.deleteFiles || deleteFiles
	s.mu.Unlock()
	s.changed()
	s.cancel(why)
}

func (s *session) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending != nil
}

func (s *session) transition(to State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setState(to)
}

// settle ends the running cell. Its result takes the late output of earlier ones along.
func (s *session) settle(e *Execution, result Result, err error) {
	late := s.takeLate()
	e.mu.Lock()
	e.late = late
	e.mu.Unlock()
	s.mu.Lock()
	s.running = nil
	s.ran = true
	s.redo.note(e.number, e.Generation(), e.restores, e.restored, result)
	s.spend()
	s.lastUsed = time.Now()
	s.active = s.lastUsed
	s.retain(e)
	if s.state == Busy {
		s.setState(Idle)
	}
	s.mu.Unlock()
	e.finish(result, err)
}
