package sessions

import "cellblock/internal/fault"

// A profile may say that its sessions are for one cell (Profile.Once). Such a session has a minted id, takes no second cell, and
// ends when its cell has ended or will never run: its kernel is stopped and its workspace deleted. What the cell produced is kept
// as any other's.

// spent tells whether the session was for one cell, and has had it.
func (s *session) spent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profile().Once && s.cells > 0 && s.running == nil && len(s.queue) == 0
}

// endSpent ends a session that has had its one cell.
func (s *session) endSpent() {
	if s.retire(s.spentWhy()) {
		s.cancel(s.whyEnding())
	}
}

func (s *session) spentWhy() *ending {
	return &ending{kind: fault.NotFound, cause: "the session was for one call, with the profile " + s.choice.Profile}
}

// spend has the session take no more cells if it was for the one that has just ended: nobody who knows that it has ended sees the
// session again. The caller holds s.mu.
func (s *session) spend() {
	if s.profile().Once && s.ending == nil {
		s.ending = s.spentWhy()
	}
}

// Once tells whether the cell's session was for this cell alone: its kernel and its files are gone when it has ended.
func (e *Execution) Once() bool { return e.once }
