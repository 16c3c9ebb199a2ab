package sessions

import (
	"context"
	"errors"
	"io"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// run is one cell on its way through the kernel.
type run struct {
	s *session
	e *Execution
	// client is that of the cell's kernel.
	client client
	// sent is closed when the cell is on its way to the kernel or cannot be sent; recall gives up sending it.
	sent   chan struct{}
	recall context.CancelFunc
	// unsent says, when sent is closed, why the cell did not reach the kernel.
	unsent error
	// first tells that the kernel has run none before.
	first bool
	// running is the cell in the kernel's client; nil when it did not get there. Valid once sent is closed.
	running cell
	// doubt tells that an earlier process was to send the cell, and nobody knows whether it did.
	doubt bool
	// cutOff tells that the cell was not followed any more; it may run on.
	cutOff bool
	// ended is closed when outcome is final.
	ended   chan struct{}
	outcome kernels.Result

	timedOut, cancelled bool
	report              InterruptReport
	// overran gets what the workspace holds when that is too much; overrun is what it got.
	overran chan int64
	overrun int64
	// replaced says why the kernel was restarted under the cell; empty if it was not.
	replaced string
	// order waits for the end of what it asked for, if there is one.
	order *order
}

// runCell runs a cell to its end, whatever that is: its own, its timeout, its cancellation, an interrupt, a restart, the
// kernel's death or the session's close.
func (s *session) runCell(e *Execution) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	sending, recall := context.WithCancel(ctx)
	defer recall()
	s.weighAgain()
	e.begin(s.takeNews(e))
	r := &run{s: s, e: e, client: s.kernel.client, first: !s.kernel.used, sent: make(chan struct{}), recall: recall, ended: make(chan struct{})}
	s.kernel.used = true
	s.manager.hands.run(func() { r.follow(ctx, sending) })
	r.toEnd(cancel)
}

// toEnd sees a cell that is being followed through.
func (r *run) toEnd(abandon context.CancelFunc) {
	r.supervise()
	r.await(abandon)
	if k := r.s.kernel; k != nil {
		k.busy = r.cutOff
	}
	r.e.dropPrompt()
	if !r.left() {
		r.conclude()
	}
}

// follow sends the cell, which takes its time while the connection to the kernel is down, and records what it produces.
func (r *run) follow(ctx, sending context.Context) {
	defer close(r.ended)
	running, err := r.client.Execute(sending, kernels.ExecuteRequest{
		Code: r.e.code, StoreHistory: true, AllowStdin: r.e.isAttended(), MsgID: r.e.msgID,
	})
	if err != nil {
		r.outcome, r.unsent = r.fallen(err), err
	} else {
		r.running = running
	}
	close(r.sent)
	if r.first {
		r.s.saveNow() // the kernel works meanwhile
	}
	if err == nil {
		r.hold()
		r.drain(ctx)
	}
}

// hold lets the shim keep what it sent until that is in the store.
func (r *run) hold() {
	if r.s.saver != nil {
		r.running.Hold()
		r.e.record.onDealt(r.running.Release)
	}
}

// drain records outputs until the cell has ended. It waits for nobody but, for a while, a store that is slower than the
// kernel; the shim goes on reading what the kernel says meanwhile.
func (r *run) drain(ctx context.Context) {
	for {
		out, err := r.running.Next(ctx)
		switch {
		case err == nil:
			if r.doubted() { // that nothing more will come is all that can be said of it
				continue
			}
			if out.Kind == kernels.OutputInput {
				r.ask(out)
			} else {
				r.e.record.append(out)
			}
			r.e.record.room(ctx)
		case errors.Is(err, io.EOF):
			r.outcome = exited(r.running.Result())
			r.s.allRead(r.e, r.client)
			return
		default:
			r.outcome, r.cutOff = r.fallen(err), ctx.Err() != nil
			if !r.cutOff {
				r.s.allRead(r.e, r.client)
			}
			return
		}
	}
}

// neverSent is the error of a cell that did not reach its kernel, though that lives.
func (r *run) neverSent() error {
	switch {
	case errors.Is(r.unsent, errNotSent):
		return errRestarted()
	case r.cancelled:
		return fault.New(fault.Cancelled, "the call was cancelled before its cell ran")
	case r.timedOut:
		return fault.New(fault.Timeout, "the cell did not run: the connection to its kernel was lost, and did not come back within %s",
			words.Length(r.e.timeout)).WithHint("call again; restart_session gives the session a fresh kernel if this goes on")
	}
	return fault.New(fault.Unavailable, "the cell did not run, because it could not be sent to the kernel: %w", r.unsent).
		WithHint("call again; restart_session gives the session a fresh kernel if this goes on")
}

// fallen is the result of a cell that could not be followed to its end.
func (r *run) fallen(err error) kernels.Result {
	death := kernels.Death{Cause: err.Error(), Time: time.Now()}
	if d, ok := errors.AsType[*kernels.DeathError](err); ok {
		death = d.Death
	}
	return kernels.Result{Status: kernels.StatusDied, Death: &death}
}

// supervise waits for the cell's end, or for the first thing that ends it before.
func (r *run) supervise() {
	timeout := time.NewTimer(r.e.timeLeft(time.Now()))
	defer timeout.Stop()
	defer r.gaugeWorkspace()()
	for r.event(timeout) {
	}
}

// event deals with the next thing that happens while the cell runs, and tells whether it goes on regardless.
func (r *run) event(timeout *time.Timer) (goesOn bool) {
	select {
	case <-r.ended:
	case now := <-timeout.C:
		if left := r.e.timeLeft(now); left > 0 && !r.over() {
			timeout.Reset(left)
			return true
		}
		r.timedOut = !r.over()
		r.climb(r.s.manager.cfg.Grace, false)
	case size := <-r.overran:
		if !r.over() {
			r.overrun = size
		}
		r.climb(min(overrunGrace, r.s.manager.cfg.Grace), false)
	case <-r.e.cancelled:
		r.cancelled = !r.over()
		r.climb(r.s.manager.cfg.Grace, false)
	case o := <-r.s.orders:
		if o.kind == orderAsk {
			o.answer(InterruptReport{}, r.s.busy(r.e))
			return true
		}
		if now := r.e.Number(); o.cell != 0 && o.cell != now {
			o.answer(InterruptReport{}, fault.New(fault.Conflict, "cell %d does not run any more; cell %d does", o.cell, now).
				WithHint("Interrupt again if that one is to stop, too."))
			return true
		}
		r.order = &o
		if o.kind == orderRestart {
			r.s.forgetSaved()
			r.replace(restartedBy(o.by) + " while this cell ran")
		} else {
			r.climb(r.s.manager.cfg.Grace, o.spare)
			r.report.Caller = o.by
			if r.report.RunsOn {
				o.answer(r.report, nil)
				r.order, r.report = nil, InterruptReport{}
				return true
			}
		}
	}
	return false
}

// await waits for the end of a cell that must end now. A client that does not tell within the grace is not waited for.
func (r *run) await(abandon context.CancelFunc) {
	select {
	case <-r.ended:
	case <-time.After(r.s.manager.cfg.Grace):
		abandon()
		<-r.ended
	}
}

func (r *run) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// conclude makes the cell's result of what happened, sees to the kernel, and answers the order that ended the cell.
func (r *run) conclude() {
	s := r.s
	if r.neverHad() {
		r.startOver()
		return
	}
	result := Result{Result: r.outcome, TimedOut: r.timedOut, Cancelled: r.cancelled, Overrun: r.overrun, Interrupt: r.report}
	if r.unsent != nil && r.replaced == "" && s.ctx.Err() == nil && !s.kernelGone() {
		s.settle(r.e, Result{TimedOut: r.timedOut, Cancelled: r.cancelled}, r.neverSent())
		r.renew(result.Interrupt)
		return
	}
	if cutOff := r.replaced != "" || s.ctx.Err() != nil; cutOff && result.Status == kernels.StatusIncomplete {
		result.Status = kernels.StatusDied
	}
	var dead *kernel
	if result.Status == kernels.StatusDied || result.Death != nil {
		death := r.death()
		result.Death, result.Restarted = &death, r.restartWanted() && s.ctx.Err() == nil
		if r.replaced == "" && s.ctx.Err() == nil {
			dead = s.lose(death)
			result.Death.Cause = beforeSaved(death.Cause, r.doubtful())
		}
	}
	result.Interrupt.VariablesKept = result.Interrupt.Ran && r.replaced == "" && result.Status != kernels.StatusDied
	result.Interrupt.VariablesSaved = result.Interrupt.Ran && result.Death != nil && HasVariablesSaved(result.Death.Cause)
	result.Files, result.MoreFiles = s.filesWritten()
	s.checkpoints.ran(r.e)
	s.settle(r.e, result, nil)
	s.tellRan()
	r.leave()
	if dead != nil {
		s.dispose(dead)
	}
	r.renew(result.Interrupt)
}

// leave tells that the cell's end was dealt with: its result is in the store, and the shim may forget it. So may we: for what
// may still come of the cell, its msg_id is enough.
func (r *run) leave() {
	if r.running != nil && r.s.ctx.Err() == nil {
		_, _ = r.running.Next(r.s.ctx)
	}
	if k := r.s.kernel; k != nil && r.e.stored() {
		client, id := k.client, r.e.msgID
		r.e.record.onDealt(func(seq uint64) { client.ReleaseLate(id, seq) })
	}
}

// death says why the cell's kernel is no more: what this server did to it is known better here than there.
func (r *run) death() kernels.Death {
	death := kernels.Death{Cause: "the kernel died", Time: time.Now()}
	if r.outcome.Death != nil {
		death = *r.outcome.Death
	}
	why, ended := errors.AsType[*ending](context.Cause(r.s.ctx))
	switch {
	case ended:
		death.Cause, death.Asked = why.cause+" while this cell ran", true
	case r.replaced != "":
		death.Cause, death.Asked = r.replaced, true
	case r.outcome.Death != nil:
		return r.s.explain(death)
	}
	return death
}

// restartWanted tells whether what ended the cell is somebody's wish for another kernel.
func (r *run) restartWanted() bool { return r.order != nil && r.order.kind == orderRestart }

// renew brings up the kernel that replaced the cell's, and answers the order that asked for it.
func (r *run) renew(report InterruptReport) {
	s := r.s
	restart := r.restartWanted()
	if r.order != nil && !restart {
		r.order.answer(report, nil)
	}
	var err error
	switch {
	case s.ctx.Err() != nil:
		err = context.Cause(s.ctx)
	case r.replaced != "" && s.kernel != nil:
		err = s.comeUp()
	case restart, r.replaced != "" && !s.ended():
		err = s.start()
	}
	if restart {
		s.restarted(*r.order, err)
	}
}
