package sessions

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/kernels"
)

// A kernel outlives the process that launched it: when that was killed, or left it running (leave.go), the next one
// attaches to it again. What the shim has kept since the last commit comes again; what is in the store already is known by
// its number (record.seen), so nothing is missing and nothing comes twice.

// reattachTime bounds how long a session looks for the kernel that an earlier process has left.
const reattachTime = 20 * time.Second

// left is what an earlier process has left of a session.
type left struct {
	kernel StoredGeneration  // the newest
	runs   bool              // nobody has written down its end
	cells  []StoredExecution // those without an end and the last that have one, oldest first
}

// leftOver tells whether an earlier process may have left a kernel, or cells whose end nobody wrote down.
func (s *session) leftOver() bool {
	return s.saver != nil && s.before == nil && s.past.Ref != 0 && s.past.Closed.IsZero()
}

// lookAgain is how often a kernel is looked for of which nothing can be found out.
const lookAgain = 15 * time.Second

// lookForKernel is takeUp for a session that begins.
func (s *session) lookForKernel() {
	if !s.leftOver() {
		return
	}
	defer close(s.settled)
	if err := s.takeUp(); err != nil {
		s.failQueue(err)
	}
	if s.kernel == nil {
		_ = s.flush(s.ctx) // whoever asks next what became of the cells is told from the store
	}
}

// awaitSettled waits until it is known what became of what an earlier process has left of the session: see reattachTime.
func (s *session) awaitSettled(ctx context.Context) error {
	select {
	case <-s.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitSettled is that of several sessions.
func awaitSettled(ctx context.Context, all []*session) error {
	for _, s := range all {
		if err := s.awaitSettled(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lookForKernelAgain is takeUp for one that is untouched still.
func (s *session) lookForKernelAgain() {
	if err := s.takeUp(); err != nil {
		s.failQueue(err)
		return
	}
	s.goOn()
}

// takeUp goes on where an earlier process has stopped without closing the session: on its kernel if that still runs.
// Otherwise it writes down what became of it. An error means that this cannot be found out now; the session is as before.
func (s *session) takeUp() error {
	if s.untouched = true; s.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, reattachTime)
	defer cancel()
	l, err := s.lookForLeft(ctx)
	switch {
	case s.ctx.Err() != nil:
		return nil
	case err != nil:
		return s.unknown(err)
	}
	if !l.runs {
		s.kernelEndedBefore(l)
		return nil
	}
	err = s.reattach(ctx, l)
	switch {
	case err == nil:
		s.untouched = false
		s.log.Info("kernel found again", "kernel", l.kernel.Ref.KernelID, "generation", l.kernel.Number)
	case s.ctx.Err() != nil:
	case errors.Is(err, errUnreachable):
		return s.unknown(err)
	default:
		s.kernelLost(l, err)
	}
	return nil
}

// errUnreachable is why nobody knows whether a kernel runs: whoever launched it does not answer.
var errUnreachable = errors.New("it cannot be reached now")

// unknown is the error of whoever wants a kernel of which nobody knows whether it runs.
func (s *session) unknown(err error) error {
	s.log.Warn("it is not known whether the kernel of an earlier server still runs", "error", err)
	f := fault.New(fault.Unavailable, "session %q has a kernel from before the server started, and %w", s.key.id, err)
	f.Hint = "call again later, its variables may be there still; restart_session gives it up for a fresh kernel"
	if hint := fault.Hint(err); hint != "" {
		f.Hint = hint + "; then call again: its variables may be there still"
	}
	return f
}

// lookForLeft reads what there is to go on with.
func (s *session) lookForLeft(ctx context.Context) (l left, err error) {
	store := s.manager.cfg.Store
	generations, err := store.Generations(ctx, s.past.Ref)
	if err != nil {
		return l, err
	}
	if n := len(generations); n > 0 {
		l.kernel = generations[n-1]
		l.runs = l.kernel.Ended.IsZero()
	}
	if l.cells, err = store.Unended(ctx, s.past.Ref); err != nil {
		return l, err
	}
	recent, err := store.Executions(ctx, s.past.Ref, max(1, s.past.Executions-maxRetained+1), maxRetained, 0)
	for _, e := range recent {
		if !e.Ended.IsZero() {
			l.cells = append(l.cells, e)
		}
	}
	l.cells = slices.DeleteFunc(l.cells, func(e StoredExecution) bool { return !s.isLeft(e.Number) })
	slices.SortFunc(l.cells, func(a, b StoredExecution) int { return a.Number - b.Number })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visits.recall(l.cells)
	s.redo.recall(l.cells)
	return l, err
}

// isLeft tells whether a cell is an earlier process's: those behind it have come to this one while it looked.
func (s *session) isLeft(number int) bool { return number <= s.past.Executions }

// reattach connects to the kernel and takes up its cells. When it fails the session is as before.
func (s *session) reattach(ctx context.Context, l left) error {
	cfg := s.manager.cfg
	handle, err := cfg.Provisioner.Attach(ctx, l.kernel.Ref)
	if err != nil {
		return attachError(err)
	}
	k := &kernel{handle: handle, used: true}
	dir, used, err := s.manager.workspaces.Acquire(s.key.workspace(), s.choice.Language)
	if err != nil {
		return errors.Join(err, s.giveUpAttaching(k))
	}
	if s.past.Workspace != "" && filepath.Base(dir) != s.past.Workspace {
		s.log.Warn("the kernel found again works in another folder than the session's", "folder", s.past.Workspace)
	}
	connected := make(chan struct{})
	defer close(connected)
	release := func(msgID string, seq uint64) {
		if <-connected; k.client != nil {
			k.client.ReleaseLate(msgID, seq)
		}
	}
	running, waiting := s.restoreCells(ctx, l, release)
	options := kernels.Options{Earlier: s.isEarlier, Late: s.addLate, KernelID: l.kernel.Ref.KernelID, Logger: s.log}
	if running != nil {
		options.Adopt = []string{running.msgID}
	}
	if k.client, err = s.manager.connect(ctx, handle, options); err != nil {
		k.client = nil
		s.forgetCells()
		return errors.Join(err, s.giveUpAttaching(k))
	}
	s.leadOut(k.client)
	s.goOnWith(k, l, used, running)
	since := time.Now()
	if running != nil {
		since = running.started
	}
	s.filesBefore(since)
	for _, e := range waiting {
		s.drop(e, Result{}, errRestarted())
	}
	return nil
}

// attachError tells apart what a failed Attach says of the kernel: that it is gone, that it is of no use here, or nothing.
func attachError(err error) error {
	if errors.Is(err, kernels.ErrGone) || fault.KindOf(err) == fault.Invalid {
		return err
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}

// giveUpAttaching stops a kernel that cannot be gone on with, unless that is only because this process has to end.
func (s *session) giveUpAttaching(k *kernel) error {
	if s.ctx.Err() != nil && s.manager.isLeaving(s.whyEnding()) {
		return k.handle.Close()
	}
	return k.dispose(0)
}

// errNotSent is why a cell of an earlier process did not reach its kernel.
var errNotSent = errors.New("it was not sent")

// errRestarted is the error of a cell that waited when its server ended.
func errRestarted() *fault.Error {
	return fault.New(fault.Unavailable, "the server restarted before this cell ran").WithHint("run it again")
}

// goOnWith makes a kernel that was found again the session's.
func (s *session) goOnWith(k *kernel, l left, filesThere bool, running *adopted) {
	s.kernel, s.untold = k, true // the process before may not have come to tell
	s.checkpoints.cell = s.past.Executions
	s.keepHandle(k.handle)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.forgetOldest()
	s.generation = l.kernel.Number - 1
	s.setState(Starting)
	s.ran, s.news, s.filesThere = true, nil, filesThere
	s.minted = sessionid.Minted(s.key.id) && s.past.Executions <= 1
	s.born, s.active, s.live = l.kernel.Started, time.Now(), k.client
	if s.found = running; running == nil {
		return
	}
	s.setState(Idle)
	s.setState(Busy)
	s.begins(running.Execution)
	running.cell, _ = k.client.Adopted(running.msgID)
	if age, ok := k.client.Since(running.msgID); ok {
		running.goesOn(age)
	}
	if !running.doubt {
		running.cell = begunCell{running.cell}
	} else {
		s.save(ExecutionBegan{Number: running.number, Generation: s.generation, Started: running.started})
	}
}

// kernelLost writes down that the kernel of an earlier process cannot be gone on with, for the next cell too.
func (s *session) kernelLost(l left, err error) {
	now, why := time.Now(), s.outlived(whyLost(s.manager.cfg.Provisioner, l.kernel.Ref, err))
	s.log.Warn("kernel not found again", "kernel", l.kernel.Ref.KernelID, "generation", l.kernel.Number, "error", err)
	s.save(GenerationEnded{Number: l.kernel.Number, Ended: now, Why: why})
	s.closeLeft(l.cells, s.past.Used, "while no server ran the kernel ended: "+why)
	s.nothingLeft(why, fmt.Sprintf("The kernel of session %q (generation %d) ended while no server ran, between %s and %s: %s.",
		s.key.id, l.kernel.Number, s.past.Used.UTC().Format(clock), now.UTC().Format(clock), why))
}

// whyLost says why a kernel of an earlier process cannot be gone on with, in the words of a sentence's end.
func whyLost(p kernels.Provisioner, ref kernels.Ref, err error) string {
	switch {
	case errors.Is(err, kernels.ErrGone):
		return "its container or sandbox is gone, as after a restart of the machine or of the container engine"
	case ref.Provisioner != p.Name():
		return fmt.Sprintf("it was launched by the provisioner %s, and this server uses %s", ref.Provisioner, p.Name())
	}
	return fmt.Sprintf("it could not be reached when the server was back: %v", err)
}

// nothingLeft notes that there is no kernel to go on with and why, and what the next cell is to be told of that.
func (s *session) nothingLeft(why string, news ...string) {
	s.committed()
	s.untouched = false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loss = why
	if len(news) > 0 {
		s.news = news
	}
	switch {
	case s.state != "":
	case wasCulled(why):
		s.setState(Culled)
	default:
		s.setState(Died)
	}
}

// kernelEndedBefore writes down the end of what was open although the kernel's end is known.
func (s *session) kernelEndedBefore(l left) {
	g, at := l.kernel, s.past.Used
	if g.Ended.After(at) {
		at = g.Ended
	}
	s.closeLeft(l.cells, at, g.Why)
	s.saved = HasVariablesSaved(g.Why)
	if g.Number > 0 && g.Why != "" {
		s.nothingLeft(g.Why, lossSentence(s.key.id, g.Number, g.Why, g.Ended))
	} else {
		s.nothingLeft(g.Why)
	}
}

// closeLeft writes down the end of cells that a process which was killed has left open; a cause says more than that.
func (s *session) closeLeft(cells []StoredExecution, at time.Time, cause string) {
	for _, e := range cells {
		if !e.Ended.IsZero() {
			continue
		}
		e = leftOpen(e, at)
		if cause != "" && e.Result.Death != nil {
			e.Result.Death.Cause = cause
		}
		s.save(ExecutionEnded{Number: e.Number, Ended: e.Ended, Result: e.Result, Failure: e.Failure, Own: e.Outputs})
	}
}

// stopLeft gives up the kernel that an earlier process has left and that was not found. One that cannot be reached now is
// stopped as soon as it can be.
func (s *session) stopLeft(why string) error {
	ctx, cancel := context.WithTimeout(context.Background(), disposeTimeout)
	defer cancel()
	l, err := s.lookForLeft(ctx)
	if err != nil {
		s.log.Error("what the session did earlier cannot be read", "error", err)
		return err
	}
	if l.runs {
		if err = s.manager.stopKernel(ctx, l.kernel.Ref); err != nil {
			err = s.stopLater(l.kernel.Ref, err)
		}
		l.kernel.Ended, l.kernel.Why = time.Now(), why
		s.save(GenerationEnded{Number: l.kernel.Number, Ended: l.kernel.Ended, Why: why})
	}
	s.kernelEndedBefore(l)
	return err
}
