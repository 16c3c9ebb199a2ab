package sessions

import (
	"cmp"
	"context"

	"cellblock/internal/fault"
)

// ahead is what a call that is about to make a session has found out, and begun, before it: the session need not do it again. The zero
// value is nothing.
type ahead struct {
	check *checking // of the pool's kernel that the session would get; nil without
	// past is what the store said of the id as of so many ends, if it answered: err is nil, or NotFound.
	past     StoredSession
	err      error
	answered bool
	asOf     int
}

// lookAhead reads what there was of a session that a request is about to make. Meanwhile the kernel that it would most likely get is
// checked.
func (m *Manager) lookAhead(ctx context.Context, k key, r Request) ahead {
	a := ahead{asOf: m.ends()}
	a.check = m.pool.checkFirst(Choice{Language: r.Language, Profile: cmp.Or(r.Profile, DefaultProfile)})
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	a.past, a.err = m.stored(ctx, k.owner, k.id)
	a.answered = a.err == nil || fault.KindOf(a.err) == fault.NotFound
	return a
}

// meet takes a kernel from the pool for a call that is about to queue its cell, so that neither waits for the other. Where that does not
// work, the cell finds the session without one.
func (s *session) meet() {
	if s.kernel != nil || s.untouched || s.before != nil || !s.expected() || !s.manager.pool.has(s.choice) {
		return
	}
	s.transition(Starting)
	ctx, cancel := context.WithTimeout(s.ctx, startTimeout)
	defer cancel()
	if s.adopt(ctx) {
		return
	}
	s.notLaunched()
	s.transition(Died)
}

// expected tells whether calls are about to want the kernel.
func (s *session) expected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.coming > 0 && s.ending == nil
}
