package sessions

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions/files"
)

// Phase is where one cell is on its way.
type Phase string

// The phases of a cell, in order. One whose kernel died without having had it is queued once more.
const (
	// PhaseQueued: other cells of the session come first, or the kernel is still starting.
	PhaseQueued Phase = "queued"
	// PhaseRunning: the kernel runs it.
	PhaseRunning Phase = "running"
	// PhaseEnded: Wait returns at once.
	PhaseEnded Phase = "ended"
)

// Execution is one cell: queued, running or ended. Its methods may be called concurrently.
type Execution struct {
	session  *session // nil for one that was read from the store
	id       string   // the session's
	choice   Choice
	number   int
	msgID    string
	code     string
	file     string          // the script that the code runs; "" for a cell of its own
	args     string          // the script's
	restores int             // the number of the cell that this one runs again
	restored RestoreProgress // how far that is when it has succeeded
	caller   string
	timeout  time.Duration
	minted   bool
	once     bool // see Once
	again    bool // it was put back already; the runner's
	record   *record
	done     chan struct{}

	counted    bool // among the cells that wait; guarded by the session's lock
	input      input
	cancelOnce sync.Once
	cancelled  chan struct{}

	mu         sync.Mutex
	phase      Phase
	ending     bool      // result and err are final
	started    time.Time // as it is written down
	since      time.Time // the same moment, but nobody can set the clock that this is reckoned by
	generation int
	preamble   string
	result     Result
	err        error
	late       []Late
}

// Result is how a cell ended.
type Result struct {
	kernels.Result
	// TimedOut tells that the cell was interrupted because its time was over, Cancelled that its caller gave it up.
	TimedOut, Cancelled bool
	// Overrun is what the workspace held, in bytes, when the cell was interrupted because that was too much; 0 if it was not.
	Overrun int64
	// Restarted tells that the cell ended because somebody had its kernel restarted under it.
	Restarted bool
	// Interrupt says what it took to stop the cell, when it was interrupted.
	Interrupt InterruptReport
	// Duration is how long the cell ran, without its time in the queue.
	Duration time.Duration
	// Files are those that the cell wrote, the new ones first, as far as that is known, and MoreFiles counts more of them.
	Files     []files.Change
	MoreFiles int
	// Unsaved says why the cell is not in the store; nil when it is, or when there is none.
	Unsaved error
}

// Interrupted tells whether the cell ended because it was interrupted, for whatever reason: also where its kernel had to be restarted
// for that, and not where the kernel died meanwhile without our doing.
func (r Result) Interrupted() bool { return r.Interrupt.Ran && (r.Death == nil || r.Death.Asked) }

// Stopped tells whether the cell ended because we ended its kernel for another reason than the cell itself: on a request to restart it,
// or with its session.
func (r Result) Stopped() bool { return !r.Interrupt.Ran && r.Death != nil && r.Death.Asked }

// InterruptReport says what an interrupt did.
type InterruptReport struct {
	// Ran tells whether a cell was running; if not, nothing was done.
	Ran bool
	// Rung is the step that stopped it: "interrupt", "kill_children" or "restart"; empty for a cell that was still waiting
	// for the connection to its kernel.
	Rung string
	// VariablesKept tells whether the kernel still has its variables, VariablesSaved that it has not, but that the next one has those that
	// had been saved.
	VariablesKept, VariablesSaved bool
	// RunsOn tells that nothing stopped the cell that was allowed to (TryInterrupt).
	RunsOn bool
	// Already tells that the cell was being stopped before this was asked: the rest is what that came to.
	Already bool
	// Caller is who asked for it, as a Request.Caller; empty where that is not known.
	Caller string
}

// Late is what an earlier cell of the session produced after it had ended, from a thread or a task of its own.
type Late struct {
	// Number is that cell's number.
	Number  int
	Outputs []kernels.Output
}

// SessionID is the id of the session that the cell runs in, also when it was minted.
func (e *Execution) SessionID() string { return e.id }

// ID names the execution within its session.
func (e *Execution) ID() string { return strconv.Itoa(e.number) }

// Number counts the cells of the session, from 1, over all generations.
func (e *Execution) Number() int { return e.number }

// Timeout is how long the cell may run.
func (e *Execution) Timeout() time.Duration { return e.timeout }

// Minted tells whether the session's id was made for this call because its request named none.
func (e *Execution) Minted() bool { return e.minted }

// Generation is that of the kernel that ran the cell; 0 while it is queued.
func (e *Execution) Generation() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.generation
}

// Preamble is what the caller must be told before anything else: that the kernel is a new one, why, what was lost and
// what was kept. It is empty normally, and final once the cell runs.
func (e *Execution) Preamble() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.preamble
}

// Phase tells where the cell is, and since when it runs (zero while it is queued).
func (e *Execution) Phase() (Phase, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase, e.since
}

// Position is the number of cells that come before it, the running one among them; 0 once it runs.
func (e *Execution) Position() int {
	if e.session == nil {
		return 0
	}
	return e.session.position(e)
}

// starting tells whether the cell's session has no kernel that could run it yet.
func (e *Execution) starting() bool {
	if e.session == nil {
		return false
	}
	e.session.mu.Lock()
	defer e.session.mu.Unlock()
	return e.session.state != Idle && e.session.state != Busy
}

// Cancel gives the cell up. A queued cell never runs; a running one climbs the interrupt ladder, and the session's next
// cell works as ever. It returns at once; Wait tells when it is done. After the end it does nothing.
func (e *Execution) Cancel() {
	if e.session == nil {
		return
	}
	e.cancelOnce.Do(func() { close(e.cancelled) })
	if e.session.unqueue(e) {
		err := fault.New(fault.Cancelled, "the call was cancelled before its cell ran")
		e.session.drop(e, Result{Cancelled: true}, err)
	}
}

// Outputs yields what the cell produces, in order from its first output, as it comes, and ends when the cell has ended.
// Any number of readers may follow at their own pace. An error is yielded only when ctx ends first, or, as the last
// value, when the cell never ran.
func (e *Execution) Outputs(ctx context.Context) iter.Seq2[kernels.Output, error] {
	return func(yield func(kernels.Output, error) bool) {
		for out, err := range e.OutputsFrom(ctx, 0) {
			if !yield(out.Output, err) {
				return
			}
		}
	}
}

// Done is closed when the cell has ended or will never run.
func (e *Execution) Done() <-chan struct{} { return e.done }

// Wait returns how the cell ended. The error is non-nil when ctx ends first, and a *fault.Error when the cell never ran:
// its kernel did not come up, it was cancelled in the queue, or the session was closed.
func (e *Execution) Wait(ctx context.Context) (Result, error) {
	select {
	case <-e.done:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.result, e.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

// Late returns what earlier cells of the session produced after their own end and nobody has been told yet. It is valid
// once the cell has ended.
func (e *Execution) Late() []Late {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.late
}

func (e *Execution) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Saved returns when all that is known of the cell so far is in the store: that it was accepted, and what it has
// produced. Whoever tells somebody of a cell that has not ended waits for it first. The error says why it is not in the
// store; without one there is nothing to wait for.
func (e *Execution) Saved(ctx context.Context) error {
	if e.session == nil {
		return nil
	}
	return e.session.flush(ctx)
}

func (e *Execution) begin(generation int, preamble string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = time.Now()
	e.phase, e.since = PhaseRunning, e.started
	e.generation, e.preamble = generation, preamble
	defer e.session.changed()
	e.session.save(ExecutionBegan{Number: e.number, Generation: generation, Started: e.started, Preamble: preamble})
}

// goesOn has the cell's time go on that began so long ago in an earlier process.
func (e *Execution) goesOn(age time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since = time.Now().Add(-age)
}

// elapsed is how long ago something was. A time that an earlier process wrote down is in the future when the clock was set
// back meanwhile: that is just now.
func elapsed(since time.Time) time.Duration { return max(time.Since(since), 0) }

// took is how long a cell ran that ended at some time, now if that is not known: at most as long as it could.
func took(started, ended time.Time, most time.Duration) time.Duration {
	if ended.IsZero() {
		return most
	}
	return min(max(0, ended.Sub(started)), most)
}

// finish ends the cell, once. A cell that ran is in the store, if that works, before anybody is told how it ended.
func (e *Execution) finish(result Result, err error) {
	e.mu.Lock()
	if e.ending {
		e.mu.Unlock()
		return
	}
	e.ending = true
	if !e.started.IsZero() {
		result.Duration = took(e.started, result.Ended, elapsed(e.since))
	}
	e.result, e.err = result, err // before readers see the record's end, because they ask for them then
	e.record.end()
	e.mu.Unlock()
	unsaved := e.session.saveEnd(e, result, err)
	e.mu.Lock()
	e.phase, e.result.Unsaved = PhaseEnded, unsaved
	e.mu.Unlock()
	if told := e.session.manager.cfg.Ended; told != nil {
		told(e.session.key.owner, e) // whoever waits for the cell finds it counted
	}
	close(e.done)
	e.session.changed()
}
