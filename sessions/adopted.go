package sessions

import (
	"context"
	"fmt"
	"time"

	"cellblock/kernels"
)

// adopted is a cell that an earlier process has sent to the kernel, or was about to.
type adopted struct {
	*Execution
	cell  cell // nil when the kernel's client does not know it
	doubt bool // the store does not say that it was sent
	asks  bool // the last that it did was to ask for input
}

// begunCell is a cell that began before this process came: no sign of that need come again.
type begunCell struct{ cell }

// Begun is closed.
func (begunCell) Begun() <-chan struct{} {
	begun := make(chan struct{})
	close(begun)
	return begun
}

// goOn follows the cell that runs in a kernel that was found again, or waits until the kernel answers. That of a session that was closed
// meanwhile is followed, too: what it has put out is read.
func (s *session) goOn() {
	running := s.found
	s.found = nil
	switch {
	case s.kernel == nil:
	case running != nil:
		s.followOn(running)
	case s.ctx.Err() != nil:
	default:
		s.awaitAnswer()
	}
}

// awaitAnswer makes a session idle whose kernel was found again. A kernel that has died since says so now.
func (s *session) awaitAnswer() {
	ctx, cancel := context.WithTimeout(s.ctx, startTimeout)
	defer cancel()
	err := s.kernel.client.Ready(ctx)
	switch {
	case err == nil:
		s.manager.spoken.note(s.choice.Language, s.kernel.client.Info())
		s.transition(Idle)
	case s.ctx.Err() != nil:
	case s.kernelGone():
		s.kernelDied(s.kernel.death())
	default:
		s.kernelDied(kernels.Death{Cause: fmt.Sprintf("it did not answer when the server was back: %v", err), Time: time.Now()})
	}
}

// followOn is runCell for a cell that was sent by an earlier process. Its time goes on from its start; how it ended while
// no server was there is learnt before that is looked at.
func (s *session) followOn(a *adopted) {
	ctx, cancel := s.untilCaughtUp()
	defer cancel()
	defer s.anyTurn()()
	r := &run{
		s: s, e: a.Execution, client: s.kernel.client, running: a.cell, doubt: a.doubt,
		sent: make(chan struct{}), recall: func() {}, ended: make(chan struct{}),
	}
	close(r.sent)
	go func() {
		defer close(r.ended)
		r.hold()
		r.drain(ctx)
		if r.doubted() && r.outcome.Status == kernels.StatusIncomplete {
			r.unsent = errNotSent
		}
	}()
	r.catchUp()
	if a.asks && !r.over() && a.record.unchanged() {
		r.replyNothing()
	}
	r.toEnd(cancel)
}

// untilCaughtUp ends with the session, but not before all that the shim has kept has come, unless that takes long.
func (s *session) untilCaughtUp() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	client := s.kernel.client
	stop := context.AfterFunc(s.ctx, func() {
		select {
		case <-client.CaughtUp():
		case <-client.Done():
		case <-ctx.Done():
		case <-time.After(catchUpTime):
		}
		cancel()
	})
	return ctx, func() { stop(); cancel() }
}

// catchUpTime bounds how long a session that has ended waits for what its cell had put out while no server was there.
const catchUpTime = 5 * time.Second

// anyTurn takes one of the places for running cells if there is one, and returns how to give it back: what runs already does
// not wait for one.
func (s *session) anyTurn() (done func()) {
	turns := s.manager.turns
	select {
	case turns <- struct{}{}:
		return func() { <-turns }
	default:
		return func() {}
	}
}

// doubted tells whether the cell may never have reached its kernel.
func (r *run) doubted() bool {
	if !r.doubt {
		return false
	}
	select {
	case <-r.running.Begun():
		return false
	default:
		return true
	}
}

// catchUp waits until all that the shim has kept has been read. Where the cell's end is among that, the cell has ended.
func (r *run) catchUp() {
	select {
	case <-r.ended:
	case <-r.s.kernel.client.CaughtUp():
	case <-r.s.kernel.client.Done():
	case <-r.s.ctx.Done():
	}
	select {
	case <-r.running.Done():
		<-r.ended
	default:
	}
}
