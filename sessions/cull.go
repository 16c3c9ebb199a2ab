package sessions

import (
	"fmt"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// Culling stops kernels that nobody uses, and those that have lived for their longest. The session stays, without a
// kernel: the next cell begins the next generation and is told. What it had in memory is saved, where that can be (saved.go).
// Sessions with a minted id that nobody came back to are closed instead. What runs a cell, or has one waiting, is left alone.

// End is when a session's kernel is to be stopped, if nothing happens before. At is zero when that is never.
type End struct {
	At time.Time
	// Unused tells that any use of the kernel puts it off. Otherwise it is the end of its longest life.
	Unused bool
}

// ends says when the kernel that runs now is stopped. The caller holds s.mu.
func (s *session) ends() (end End) {
	cfg := s.manager.cfg
	idle, life := cfg.IdleTimeoutOf(s.choice.Language), cfg.maxLifeOf(s.choice.Language)
	sooner := func(at time.Time, unused bool) {
		if end.At.IsZero() || at.Before(end.At) {
			end = End{at, unused}
		}
	}
	resting := s.running == nil && len(s.queue) == 0
	if resting && s.unclaimed() {
		sooner(s.unclaimedUntil(), true)
	}
	if resting && s.state == Idle && idle > 0 {
		sooner(s.active.Add(idle), true)
	}
	if (s.state == Idle || s.state == Busy) && life > 0 {
		sooner(s.born.Add(life), false)
	}
	return end
}

// cullTimer fires when the session's kernel, or the session, is to end.
func (s *session) cullTimer() (<-chan time.Time, func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.ends().At
	if at.IsZero() {
		return nil, func() bool { return false }
	}
	t := time.NewTimer(time.Until(at))
	return t.C, t.Stop
}

// cull ends what is due.
func (s *session) cull() {
	now := time.Now()
	if s.abandoned(now) {
		s.cullMinted()
		return
	}
	why := s.dueCull(now)
	if why == "" {
		return
	}
	saved, wanted := s.saveVariables()
	if wanted {
		return
	}
	s.log.Info("kernel is culled", "why", why, "saved", saved)
	why = s.withVariables(why, saved)
	s.addLoss(why, time.Now())
	s.lost(Culled)
	unused := s.kernel
	s.kernel = nil
	if err := unused.dispose(stopGrace); err != nil {
		s.log.Error("a culled kernel could not be stopped", "error", err)
	}
}

// culledBecause begins why a kernel was culled. By it a server that comes later knows such a kernel from one that died.
const culledBecause = "it was stopped because "

// wasCulled tells whether why a kernel ended is that it was culled, also by a server that called it so.
func wasCulled(why string) bool {
	return strings.HasPrefix(why, culledBecause) || strings.HasPrefix(why, "it was culled because ")
}

// dueCull says why the session's kernel is to be stopped, if its time is over.
func (s *session) dueCull(now time.Time) (why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := s.ends()
	if s.state != Idle || len(s.queue) > 0 || s.ending != nil || end.At.IsZero() || now.Before(end.At) {
		return ""
	}
	if end.Unused {
		return fmt.Sprintf(culledBecause+"no cell had run for %s", words.Length(s.manager.cfg.IdleTimeoutOf(s.choice.Language)))
	}
	return fmt.Sprintf(culledBecause+"it had lived for %s, the most that a kernel may", words.Length(s.manager.cfg.maxLifeOf(s.choice.Language)))
}

// cullMinted ends a minted session that nobody came back to.
func (s *session) cullMinted() {
	why := &ending{kind: fault.NotFound, cause: "the session was closed because its id was minted and nobody used it again for " +
		words.Length(s.manager.cfg.MintedIdle)}
	if s.retire(why) {
		s.cancel(why)
	}
}

// abandoned tells whether a minted session has waited long enough for its second call.
func (s *session) abandoned(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unclaimed() && !now.Before(s.unclaimedUntil())
}

// unclaimedUntil is how long a minted session waits for its second call. The caller holds s.mu.
func (s *session) unclaimedUntil() time.Time {
	return later(s.lastUsed, s.active).Add(s.manager.cfg.MintedIdle)
}

// unclaimed tells whether nobody has used a minted session since its first cell. The caller holds s.mu.
func (s *session) unclaimed() bool {
	return s.minted && s.cells-s.past.Executions <= 1 && !s.wanted
}

// VariablesSaved tells whether the variables of the cell's kernel are saved before it is culled.
func (e *Execution) VariablesSaved() bool {
	return e.session != nil && e.session.manager.cfg.SavesVariables(e.session.choice.Language)
}

// KernelEnds says when the kernel that ran the cell is to be stopped; never, as far as this tells, once it is not its
// session's kernel any more.
func (e *Execution) KernelEnds() End {
	if e.session == nil {
		return End{}
	}
	generation := e.Generation()
	e.session.mu.Lock()
	defer e.session.mu.Unlock()
	if e.session.generation != generation {
		return End{}
	}
	return e.session.ends()
}
