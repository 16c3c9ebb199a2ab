package sessions

import (
	"cmp"
	"context"
	"errors"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// What a session has to do with the store: it looks back at what there was, claims it, has what happens saved, and gives
// it back. Without a store all of this does nothing.

const (
	// storeTime bounds what a session waits for the store to answer, deleteTime for it to delete all there is of a session.
	storeTime  = 10 * time.Second
	deleteTime = time.Minute
	// maxMemory bounds what a session holds in memory of its ended cells, in bytes.
	maxMemory = 64 << 20
)

// serverEnded is why a session or a kernel ended of which nobody lived to write it down.
const serverEnded = "the server that ran it ended"

// lookBack finds out what there was of the session, so that its cells can be numbered.
func (s *session) lookBack() {
	defer close(s.opened)
	defer func() {
		if !s.leftOver() {
			close(s.settled)
		}
	}()
	if s.saver == nil {
		return
	}
	if s.before != nil {
		s.follow(s.before)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	past, err := s.ahead.past, s.ahead.err
	if !s.ahead.answered {
		past, err = s.manager.cfg.Store.Session(ctx, s.key.owner, s.key.id)
	}
	s.ahead = ahead{check: s.ahead.check}
	switch {
	case fault.KindOf(err) == fault.NotFound:
	case err != nil:
		s.log.Error("what the session did earlier cannot be read", "error", err)
	case s.minted:
		s.close(&ending{kind: fault.Conflict, cause: "the minted id was taken"}, false) // the next one is tried
	default:
		s.resume(past)
	}
}

// follow goes on counting where a session of the same id that is ending has stopped, and has the session be as old; one whose files are
// deleted leaves nothing to be older by.
func (s *session) follow(before *session) {
	<-before.opened
	was, deleted := before.info(), before.deletes()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cells, s.past.Executions = was.Executions, was.Executions
	if !deleted {
		s.created = was.Created
	}
}

// comeAfter has the generations counted of one of the same id that has ended. Its files may be deleted only since it was followed.
func (s *session) comeAfter(before *session) {
	was, deleted := before.info(), before.deletes()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation, s.past.Generations = was.Generation, was.Generation
	if deleted {
		s.created = s.saver.want.Created
	}
}

// resume goes on where a session in the store has stopped.
func (s *session) resume(past StoredSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past, s.cells, s.generation = past, past.Executions, past.Generations
	s.created, s.lastUsed = past.Created, past.Used
	if len(s.news) == 0 && past.Generations > 0 {
		at, why := past.Closed, past.Why
		if at.IsZero() {
			at, why = past.Used, serverEnded
		}
		s.news = []string{pastSentence(s.key.id, why, at)}
	}
}

// claim makes the session this process's in the store. When another process has it, it ends here.
func (s *session) claim() {
	if s.saver == nil {
		return
	}
	if s.before != nil {
		s.comeAfter(s.before)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	err := s.saver.open(ctx, s.past.Executions+1)
	if err == nil {
		return
	}
	s.mu.Lock()
	s.conflict = err
	s.mu.Unlock()
	s.close(&ending{kind: fault.Conflict, cause: err.Error()}, false)
	s.failQueue(err)
}

// leftOpen is an execution whose end nobody wrote down, with the end that it must have had.
func leftOpen(e StoredExecution, at time.Time) StoredExecution {
	e.Ended, e.Own = at, e.Outputs
	if e.Started.IsZero() {
		e.Failure = errRestarted()
		return e
	}
	const cause = "the server that ran this cell ended"
	e.Result = Result{
		Result:   kernels.Result{Status: kernels.StatusDied, Started: e.Started, Death: &kernels.Death{Cause: cause, Time: at}},
		Duration: max(0, at.Sub(e.Started)),
	}
	return e
}

// save has changes saved.
func (s *session) save(changes ...Change) {
	if s.saver != nil {
		s.saver.add(changes...)
	}
}

// saveEnd saves how a cell ended, and waits until it is saved if the cell ran. The error says to its owner why it is not; the store
// has told the log.
func (s *session) saveEnd(e *Execution, result Result, err error) error {
	if s.saver == nil {
		return nil
	}
	end := ExecutionEnded{Number: e.number, Ended: time.Now(), Result: result, Own: e.record.own()}
	if err != nil {
		end.Failure = failureOf(err)
	}
	e.record.endsWith(s.saver.add(end))
	if err != nil {
		return nil
	}
	return fault.WithoutPlaces(s.flush(context.Background()))
}

// failureOf is an error as it is kept.
func failureOf(err error) *fault.Error {
	return &fault.Error{Kind: fault.KindOf(err), Message: err.Error(), Hint: fault.Hint(err)}
}

// flush waits until everything so far is saved, but not for a store that does not move.
func (s *session) flush(ctx context.Context) error {
	if s.saver == nil {
		return nil
	}
	return s.saver.flush(ctx, storeTime)
}

// generationBegan notes the kernel that runs now.
func (s *session) generationBegan() {
	s.checkpoints.owed = 0
	if s.saver != nil {
		s.begun = s.saver.add(GenerationBegan{Number: s.info().Generation, Ref: s.kernel.handle.Ref(), Started: time.Now()})
	}
}

// saveNow has what was noted saved without delay: a kernel that the store does not know is nobody's to the next process, which ends
// it, whatever it has been given to do.
func (s *session) saveNow() {
	if s.saver != nil {
		s.saver.now()
	}
}

// generationEnded notes that the kernel is no more.
func (s *session) generationEnded(why string) {
	s.save(GenerationEnded{Number: s.info().Generation, Ended: time.Now(), Why: why})
}

// release gives back the session's folder and its place in the store, or deletes both.
func (s *session) release(why *ending) error {
	s.mu.Lock()
	deleteFiles, conflict := s.deleteFiles, s.conflict
	s.givenBack = true
	s.mu.Unlock()
	if conflict != nil {
		s.manager.workspaces.Leave(s.key.workspace())
		s.saver.abandon()
		return conflict // both are another process's
	}
	err := s.manager.workspaces.Release(s.key.workspace(), deleteFiles || s.profile().Once)
	if s.saver == nil {
		return err
	}
	if deleteFiles {
		ctx, cancel := context.WithTimeout(context.Background(), deleteTime)
		defer cancel()
		s.saver.abandon()
		return errors.Join(err, s.manager.cfg.Store.Delete(ctx, s.key.owner, s.key.id))
	}
	s.save(SessionClosed{Closed: time.Now(), Why: why.cause})
	_ = s.saver.close(context.Background(), storeTime) // it has been logged, and the session is gone whether it is written down or not
	return err
}

// deletes tells whether nothing is to be left of the session once it has ended.
func (s *session) deletes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleteFiles
}

// gaveBack tells whether the session has no folder any more, and will have none.
func (s *session) gaveBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.givenBack
}

// refusal is why the session was not this process's to have, nil if it was.
func (s *session) refusal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conflict
}

func (s *session) refused() bool { return s.refusal() != nil }

// accepted is how many cells this process has accepted for the session.
func (s *session) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cells - s.past.Executions
}

// recorded tells whether the store has a session.
func (m *Manager) recorded(ctx context.Context, o Owner, id string) bool {
	_, err := m.stored(ctx, o, id)
	return err == nil
}

// stored returns a session of the store, NotFound without one.
func (m *Manager) stored(ctx context.Context, o Owner, id string) (StoredSession, error) {
	if m.cfg.Store == nil {
		return StoredSession{}, fault.New(fault.NotFound, "there is no session %q", id)
	}
	return m.cfg.Store.Session(ctx, o, id)
}

// nowhere is the error of a session that is neither in memory, which says err, nor in the store: what ails the store, where it is that
// which keeps the session from being found.
func nowhere(err, storeErr error) error {
	if fault.KindOf(storeErr) != fault.NotFound {
		return storeErr
	}
	return err
}

// restore makes an execution of what the store has of one. Where late output of it still finds its way to a session, which may be nil,
// whoever has the execution sees that come.
func (m *Manager) restore(past StoredSession, e StoredExecution, s *session) (*Execution, error) {
	if e.Ended.IsZero() {
		if past.Held {
			return nil, fault.New(fault.Conflict, "cell %d of session %q runs in another cellblock process", e.Number, past.ID).
				WithHint("ask that one, or try again when the cell has ended")
		}
		e = leftOpen(e, past.Used)
	}
	restored := &Execution{
		id: past.ID, choice: past.choice(), once: m.cfg.Profiles[past.choice().Profile].Once, number: e.Number, msgID: e.MsgID, code: e.Code, file: e.File, args: e.Args, restores: e.Restores, caller: e.Caller,
		timeout: e.Timeout, record: restoredRecord(m.cfg.Store, past.Ref, e), done: make(chan struct{}), cancelled: make(chan struct{}),
		phase: PhaseEnded, ending: true, started: e.Started, generation: e.Generation, preamble: e.Preamble, result: e.Result,
	}
	if e.Failure != nil {
		restored.err = e.Failure
	}
	if s != nil {
		restored.record = cmp.Or(s.retained(e.Number), restored.record)
	}
	close(restored.done)
	return restored, nil
}

// restoredRecord is the record of an execution that is in the store only.
func restoredRecord(store Store, ref SessionRef, e StoredExecution) *record {
	n := e.length()
	r := &record{
		number: e.Number, count: n, endCount: e.Own, ended: true,
		shelf: &shelf{saver: &saver{store: store, ref: ref}, saved: n},
	}
	if n > 0 {
		r.parts = []*part{{span: span{0, n}}}
		r.heads = 1
	}
	return r
}

// notKept is the error for a cell that there is nothing of.
func notKept(id string, number, cells int) error {
	if number < 1 || number > cells {
		return fault.New(fault.NotFound, "session %q has no cell %d: it has had %d", id, number, cells).
			WithHint("list_executions names the ones there are")
	}
	return fault.New(fault.NotFound, "what cell %d of session %q produced is not kept any more", number, id).
		WithHint("list_executions names the ones there are; let code write what must last into a file")
}
