package sessions

import (
	"context"
	"strings"
	"time"

	"cellblock/internal/fault"
)

// orderKind is what a caller asks of a session's runner.
type orderKind int

const (
	orderInterrupt orderKind = iota
	orderRestart
	// orderAsk is a question to an idle kernel.
	orderAsk
)

// order is a request to the runner; it answers on reply, which never blocks it.
type order struct {
	kind  orderKind
	cell  int          // of an orderInterrupt: the only cell that it is for; 0: any
	spare bool         // of an orderInterrupt: the variables are not given for it
	by    string       // who asks, as a Request.Caller; it may be empty
	ask   func() error // of an orderAsk: what the runner does while no cell runs
	reply chan answer
}

type answer struct {
	report InterruptReport
	news   string // of an orderRestart: what the next cell is told of it; empty where it changed nothing
	err    error
}

func (o order) answer(report InterruptReport, err error) { o.reply <- answer{report: report, err: err} }

// send gives the runner an order and waits for its answer. Its error is the session's *ending if it ends first.
func (s *session) send(ctx context.Context, o order) answer {
	o.reply = make(chan answer, 1)
	select {
	case s.orders <- o:
	case <-s.ctx.Done():
		return answer{err: context.Cause(s.ctx)}
	case <-ctx.Done():
		return answer{err: context.Cause(ctx)}
	}
	select {
	case a := <-o.reply:
		return a
	case <-s.gone:
		select {
		case a := <-o.reply: // the answer says more
			return a
		default:
			return answer{err: context.Cause(s.ctx)}
		}
	case <-ctx.Done():
		return answer{err: context.Cause(ctx)}
	}
}

// run is the session's one goroutine. It alone touches the kernel.
func (s *session) run() {
	defer s.end()
	if check := s.ahead.check; check == nil || check.kernel.choice != s.choice {
		s.ahead.check = s.manager.pool.checkFirst(s.choice)
	}
	s.lookBack()
	if s.after != nil {
		<-s.after
	}
	s.claim()
	if !s.leftOver() {
		s.expectSaved()
	}
	s.lookForKernel()
	s.goOn()
	s.meet()
	for s.ctx.Err() == nil {
		if s.waiting() {
			s.serve()
			continue
		}
		if s.spent() {
			s.endSpent()
			continue
		}
		s.rest()
	}
}

// rest waits, with no cell to run, until there is something to do.
func (s *session) rest() {
	cull, stop := s.cullTimer()
	defer stop()
	var again <-chan time.Time
	if s.untouched {
		again = time.After(lookAgain)
	}
	select {
	case <-s.ctx.Done():
	case <-s.wake:
	case <-s.kernelDone():
		s.kernelDied(s.kernel.death())
	case o := <-s.orders:
		s.obey(o)
	case <-cull:
		s.cull()
	case <-s.later.timer():
		s.later.begin()
	case <-s.checkpointTimer():
		s.checkpoint()
	case <-again:
		s.lookForKernelAgain()
	}
}

// serve runs the next cell, on a kernel that it starts if there is none.
func (s *session) serve() {
	select {
	case o := <-s.orders:
		s.obey(o)
		return
	default:
	}
	if s.untouched {
		s.lookForKernelAgain()
		return
	}
	if s.kernelGone() {
		s.kernelDied(s.kernel.death())
	}
	if s.kernel == nil {
		if err := s.start(); err != nil {
			s.startFailed(err)
		}
		return
	}
	done := s.awaitTurn()
	if done == nil {
		return
	}
	defer done()
	if e := s.pop(); e != nil {
		s.runCell(e)
	}
}

// obey carries out an order while no cell runs.
func (s *session) obey(o order) {
	switch o.kind {
	case orderInterrupt:
		o.answer(InterruptReport{VariablesKept: s.kernel != nil}, nil)
	case orderAsk:
		o.answer(InterruptReport{}, o.ask())
	case orderRestart:
		s.replaced = ""
		s.restarted(o, s.renew(restartedBy(o.by)))
	}
}

// restarted answers an order to restart.
func (s *session) restarted(o order, err error) { o.reply <- answer{news: s.replaced, err: err} }

// renew gives the session a fresh kernel while no cell runs: in place when there is one to restart. One that has run
// nothing yet is fresh, so that a restart during the start does not start twice.
func (s *session) renew(why string) error {
	if s.untouched {
		_ = s.stopLeft(why) // it has been logged, and is tried again
		s.untouched = false
	}
	if s.kernelGone() {
		s.kernelDied(s.kernel.death())
	}
	if s.kernel != nil && !s.kernel.used {
		return nil
	}
	s.forgetSaved()
	if s.info().State == Culled {
		s.replaced = s.latest() // what it had is given up by who asks; a kernel that died is news to him all the same
	}
	if s.kernel != nil && s.restart(why) {
		return s.comeUp()
	}
	return s.start()
}

// startFailed tells everybody who waited for the kernel. A session that never had one is gone with that; an older one
// stays, because it has files, and the next call tries again.
func (s *session) startFailed(err error) {
	s.failQueue(err)
	if s.everRan() {
		return
	}
	cause, _, _ := strings.Cut(err.Error(), "\n") // without the kernel's log
	why := &ending{kind: fault.Unavailable, cause: cause}
	if s.retire(why) {
		s.cancel(why)
	}
}

func (s *session) everRan() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran
}

// end stops the kernel, fails what waits and gives the id free.
func (s *session) end() {
	why := s.whyEnding()
	s.failQueue(fault.New(why.kind, "%s before this cell ran", why.cause))
	s.later.finish()
	s.transition(Closed)
	left, err := s.leave(why)
	if !left {
		why = s.saveAtLast(why)
		err = s.stop(why)
	}
	s.endErr = err
	if err != nil && !s.refused() {
		s.log.Error("session did not end cleanly", "error", err)
	}
	s.manager.forget(s, why)
	s.cancel(why)
	close(s.gone)
}

// stop ends the kernel, and gives back what the session has.
func (s *session) stop(why *ending) error {
	var err error
	switch {
	case s.kernel != nil:
		if err = s.kernel.dispose(stopGrace); err != nil {
			err = s.stopLater(s.kernel.handle.Ref(), err)
		}
		s.kernel = nil
		s.generationEnded(why.cause)
	case s.untouched && !s.refused():
		err = s.stopLeft(why.cause)
	}
	if why.forgets {
		s.forgetSaved()
	}
	if releaseErr := s.release(why); err == nil {
		err = releaseErr
	}
	return err
}

func (s *session) whyEnding() *ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending == nil {
		s.ending = &ending{kind: fault.Internal, cause: "the session ended"}
	}
	return s.ending
}
