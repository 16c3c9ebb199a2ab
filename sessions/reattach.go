package sessions

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"cellblock/internal/fault"
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
	cells  []StoredExecution // the last, oldest first
}

// leftOver tells whether an earlier process may have left a kernel, or cells whose end nobody wrote down.
func (s *session) leftOver() bool {
	return s.saver != nil && s.before == nil && s.past.Ref != 0 && s.past.Closed.IsZero()
}

// takeUp goes on where an earlier process has stopped without closing the session: on its kernel if that still runs.
// Otherwise it writes down what became of it.
func (s *session) takeUp() {
	if !s.leftOver() {
		return
	}
	defer close(s.settled)
	if s.untouched = s.ctx.Err() != nil; s.untouched {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, reattachTime)
	defer cancel()
	l, err := s.lookForLeft(ctx)
	if err != nil {
		s.log.Error("what the session did earlier cannot be read", "error", err)
		return
	}
	if !l.runs {
		s.kernelEndedBefore(l)
		return
	}
	switch err = s.reattach(ctx, l); {
	case err == nil:
		s.log.Info("kernel found again", "kernel", l.kernel.Ref.KernelID, "generation", l.kernel.Number)
	case s.ctx.Err() == nil:
		s.kernelLost(l, err)
	default:
		s.untouched = true
	}
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
	from := s.past.Executions - maxRetained - s.manager.cfg.MaxQueue
	l.cells, err = store.Executions(ctx, s.past.Ref, max(from, 1), s.past.Executions)
	return l, err
}

// reattach connects to the kernel and takes up its cells. When it fails the session is as before.
func (s *session) reattach(ctx context.Context, l left) error {
	cfg := s.manager.cfg
	handle, err := cfg.Provisioner.Attach(ctx, l.kernel.Ref)
	if err != nil {
		return err
	}
	k := &kernel{handle: handle, used: true}
	dir, used, err := s.manager.workspaces.acquire(s.key, s.language)
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
	s.goOnWith(k, l, used, running)
	for _, e := range waiting {
		s.drop(e, Result{}, errRestarted())
	}
	return nil
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
	s.kernel = k
	s.keepHandle(k.handle)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation = l.kernel.Number - 1
	s.setState(Starting)
	s.ran, s.news, s.filesThere = true, nil, filesThere
	s.minted = mintedID(s.key.id) && s.past.Executions <= 1
	s.born, s.active = l.kernel.Started, time.Now()
	if s.found = running; running == nil {
		return
	}
	s.setState(Idle)
	s.setState(Busy)
	s.running = running.Execution
	running.cell, _ = k.client.Adopted(running.msgID)
	if !running.doubt {
		running.cell = begunCell{running.cell}
	} else {
		s.save(ExecutionBegan{Number: running.number, Generation: s.generation, Started: running.started})
	}
}

// kernelLost writes down that the kernel of an earlier process cannot be found again, for the next cell too.
func (s *session) kernelLost(l left, err error) {
	const gone = "its container or sandbox is gone, as after a restart of the machine or of the container engine"
	now, why := time.Now(), gone
	if !errors.Is(err, kernels.ErrGone) {
		why = fmt.Sprintf("it could not be reached when the server was back: %v", err)
	}
	s.log.Warn("kernel not found again", "kernel", l.kernel.Ref.KernelID, "generation", l.kernel.Number, "error", err)
	s.mu.Lock()
	s.news = []string{fmt.Sprintf("The kernel of session %q (generation %d) ended while no server ran, between %s and %s: %s.",
		s.key.id, l.kernel.Number, s.past.Used.UTC().Format(clock), now.UTC().Format(clock), why)}
	s.mu.Unlock()
	s.save(GenerationEnded{Number: l.kernel.Number, Ended: now, Why: why})
	s.closeLeft(l.cells, "while no server ran the kernel ended: "+why)
}

// kernelEndedBefore writes down the end of what was open although the kernel's end is known.
func (s *session) kernelEndedBefore(l left) {
	if g := l.kernel; g.Number > 0 && g.Why != "" {
		s.mu.Lock()
		s.news = []string{lossSentence(s.key.id, g.Number, g.Why, g.Ended)}
		s.mu.Unlock()
	}
	s.closeLeft(l.cells, "")
}

// closeLeft writes down the end of cells that a process which was killed has left open; a cause says more than that.
func (s *session) closeLeft(cells []StoredExecution, cause string) {
	for _, e := range cells {
		if !e.Ended.IsZero() {
			continue
		}
		e = leftOpen(e, s.past.Used)
		if cause != "" && e.Result.Death != nil {
			e.Result.Death.Cause = cause
		}
		s.save(ExecutionEnded{Number: e.Number, Ended: e.Ended, Result: e.Result, Failure: e.Failure, Own: e.Outputs})
	}
}
