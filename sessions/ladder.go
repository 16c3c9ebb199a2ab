package sessions

import (
	"context"
	"time"
)

// The rungs of the interrupt ladder, as InterruptReport names them.
const (
	RungInterrupt    = "interrupt"
	RungKillChildren = "kill_children"
	RungRestart      = "restart"
)

// climb ends the running cell with the least that works: do not send it; interrupt it; kill the processes that it started;
// restart its kernel. Each rung but the first has grace to show that it worked. To spare the variables the last one is left out, and the
// cell may run on.
func (r *run) climb(grace time.Duration, spare bool) {
	r.recall()
	<-r.sent
	if r.unsent != nil {
		r.report = InterruptReport{Ran: true, VariablesKept: true}
	}
	if r.over() || r.unsent != nil {
		return
	}
	r.report = InterruptReport{Ran: true, Rung: RungInterrupt}
	if r.try(grace, r.interrupt) {
		return
	}
	r.report.Rung = RungKillChildren
	if r.try(grace, r.killChildren) {
		return
	}
	if spare {
		r.report = InterruptReport{Ran: true, VariablesKept: true, RunsOn: true}
		return
	}
	r.report.Rung = RungRestart
	r.replace(r.s.outlived("the kernel was restarted because the cell did not stop when it was interrupted"))
}

// try takes one rung: act tells whether it is worth waiting for, and then the cell has the rest of grace to end. What its
// kernel misses of that, because others have the processor, it gets once more: a cell that would stop must not cost its
// session all variables because the machine is busy.
func (r *run) try(grace time.Duration, act func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(r.s.ctx, grace)
	defer cancel()
	client, before := r.s.kernel.client, make(chan time.Duration, 1)
	go func() { before <- starved(ctx, client) }()
	if !act(ctx) {
		return r.over()
	}
	select {
	case <-r.ended:
		return true
	case <-ctx.Done():
	}
	return r.over() || r.extend(grace, client, <-before)
}

// maxExtension bounds how often a rung's grace is given again.
const maxExtension = 4

// extend waits for the cell's end for as long as its kernel did not get to run within its grace.
func (r *run) extend(grace time.Duration, c client, before time.Duration) bool {
	for left := maxExtension * grace; left > 0 && before >= 0 && r.s.ctx.Err() == nil; {
		now := starved(r.s.ctx, c)
		missed := min(now-before, grace, left)
		if missed < grace/4 {
			break
		}
		before, left = now, left-missed
		select {
		case <-r.ended:
			return true
		case <-time.After(missed):
		case <-r.s.ctx.Done():
		}
	}
	return r.over()
}

// starved is how long a kernel has waited for a processor so far; negative if that cannot be found out soon.
func starved(ctx context.Context, c client) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, starvedTime)
	defer cancel()
	stats, err := c.Stats(ctx)
	if err != nil {
		return -1
	}
	return stats.Starved
}

// starvedTime bounds the question whether a kernel gets to run.
const starvedTime = time.Second

// interrupt asks the cell to stop, once the kernel has taken it: what comes before that is lost. It asks again when half of
// the time is over, for kernels that lose what comes between taking a request and running it.
func (r *run) interrupt(ctx context.Context) bool {
	deadline, _ := ctx.Deadline()
	half := time.NewTimer(time.Until(deadline) / 2)
	defer half.Stop()
	select {
	case <-r.running.Begun():
		if !r.interruptOnce(ctx) {
			return false
		}
	case <-r.ended:
		return true
	case <-half.C:
		return r.interruptOnce(ctx)
	case <-ctx.Done():
		return true
	}
	select {
	case <-r.ended:
		return true
	case <-half.C:
		return r.interruptOnce(ctx)
	case <-ctx.Done():
		return true
	}
}

func (r *run) interruptOnce(ctx context.Context) bool {
	err := r.s.kernel.client.Interrupt(ctx)
	if err != nil && r.s.ctx.Err() == nil { // while it is being closed that is no news
		r.s.log.Warn("kernel was not interrupted", "error", err)
	}
	return err == nil
}

func (r *run) killChildren(ctx context.Context) bool {
	killed, err := r.s.kernel.client.KillChildren(ctx)
	if err != nil && r.s.ctx.Err() == nil {
		r.s.log.Warn("the cell's child processes were not killed", "error", err)
	}
	return err == nil && killed > 0
}

// replace restarts the kernel under the running cell, which ends with that.
func (r *run) replace(why string) {
	if r.s.ctx.Err() != nil {
		return // the session is being closed, and everything ends with it
	}
	r.replaced = why
	r.s.restart(why)
}

// restart replaces the kernel process in place: same container, same files, next generation. It returns false when that
// did not work, or when one from the pool is there sooner; then the kernel is gone, and the caller starts another one.
func (s *session) restart(why string) bool {
	s.transition(Restarting)
	s.replaced = s.addLoss(why, time.Now())
	if s.manager.pool.has(s.choice) {
		s.giveAway(restartGrace)
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, startTimeout)
	defer cancel()
	if err := s.kernel.client.Restart(ctx, restartGrace); err != nil {
		s.log.Warn("kernel could not be restarted in place, a new one will be started", "error", err)
		s.giveAway(0)
		return false
	}
	s.kernel.used, s.kernel.busy = false, false
	s.transition(Starting)
	s.generationBegan()
	s.saveNow()
	return true
}

// giveAway stops the kernel, for which another one is to be started: until then the session goes on restarting.
func (s *session) giveAway(grace time.Duration) {
	old := s.kernel
	s.kernel = nil
	if err := old.dispose(grace); err != nil {
		s.log.Error("what is left of a kernel could not be stopped", "error", err)
	}
}
