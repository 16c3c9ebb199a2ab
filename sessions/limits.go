package sessions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// What all sessions together may have: kernels, by owner and in all, cells that wait and cells that run. What is refused
// says which limit it was and what makes room. Sessions without a kernel, culled or died, need none and do not count.

// hasKernel tells whether the session has a kernel, or is about to get one.
func (s *session) hasKernel() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rests := (s.state == Died || s.state == Culled) && len(s.queue) == 0 && s.running == nil && s.coming == 0
	return s.ending == nil && !rests
}

// admit refuses an owner one more kernel when there are too many, or when this host has no memory for it. The caller holds
// m.mu.
func (m *Manager) admit(o Owner) error {
	var own, all int
	for k, s := range m.sessions {
		if !s.hasKernel() {
			continue
		}
		all++
		if k.owner == o {
			own++
		}
	}
	switch most := m.cfg.MaxSessionsPerOwner; {
	case most > 0 && own >= most:
		return fault.New(fault.Busy, "you may have no more sessions with a kernel: %d of %d are there", own, most).
			WithHint("%s", m.makeRoom(o))
	case m.cfg.MaxSessions > 0 && all >= m.cfg.MaxSessions:
		return fault.New(fault.Busy, "the server may have no more sessions with a kernel: %d of %d are there", all, m.cfg.MaxSessions).
			WithHint("%s; or try again later", m.makeRoom(o))
	}
	return m.enoughMemory(o)
}

// enoughMemory refuses one more kernel while this host has little memory left.
func (m *Manager) enoughMemory(o Owner) error {
	least := m.cfg.MinFreeMemory
	if least <= 0 {
		return nil
	}
	if _, free := m.memory.room(); free >= 0 && free < least {
		return fault.New(fault.Busy, "the server is short of memory for another kernel: %s are free, %s must be", words.Bytes(free), words.Bytes(least)).
			WithHint("%s; or try again later", m.makeRoom(o))
	}
	if percent, short := m.memory.stalled(); short {
		return fault.New(fault.Busy, "the server is short of memory for another kernel: programs stood still for it for %.3g %% of the last 10 s; "+
			"kernels start again when that is under %d %% for a minute", percent, relief).
			WithHint("%s; or try again in a minute", m.makeRoom(o))
	}
	return nil
}

// makeRoom says what an owner can do to get another kernel: which of his sessions are idle, the least recently used first.
// The caller holds m.mu.
func (m *Manager) makeRoom(o Owner) string {
	var idle []Info
	for k, s := range m.sessions {
		if info := s.info(); k.owner == o && info.State == Idle {
			idle = append(idle, info)
		}
	}
	if len(idle) == 0 {
		return "close_session one that you do not need"
	}
	slices.SortFunc(idle, func(a, b Info) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), cmp.Compare(a.ID, b.ID))
	})
	const most = 5
	var names []string
	for _, info := range idle[:min(most, len(idle))] {
		names = append(names, info.ID)
	}
	more := ""
	if n := len(idle) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "close_session one that you do not need; idle: " + strings.Join(names, ", ") + more
}

// maxDormant bounds the sessions of one owner that have no kernel.
const maxDormant = 100

// closeDormant closes the session of an owner that was used longest ago, if very many have no kernel. Its files and its history
// stay. The caller holds m.mu.
func (m *Manager) closeDormant(o Owner) {
	var oldest *session
	dormant := 0
	for k, s := range m.sessions {
		if k.owner != o || s.ended() || s.hasKernel() {
			continue
		}
		if dormant++; oldest == nil || s.info().LastUsed.Before(oldest.info().LastUsed) {
			oldest = s
		}
	}
	if dormant >= maxDormant {
		oldest.close(&ending{kind: fault.Cancelled, cause: fmt.Sprintf("the session was closed because %d others of its owner have no kernel either", dormant-1)}, false)
	}
}

// seat makes sure that a session may have a kernel, and keeps its place until the returned function is called. The caller
// holds m.mu.
func (m *Manager) seat(s *session) (release func(), err error) {
	if !s.hasKernel() {
		if err := m.admit(s.key.owner); err != nil {
			return nil, err
		}
	}
	s.come(1)
	return func() { s.come(-1) }, nil
}

func (s *session) come(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming += n
}

// roomToWait refuses a cell when too many wait, of all sessions.
func (m *Manager) roomToWait() error {
	if most := m.cfg.MaxWaiting; most > 0 && m.waiting.Load() >= int64(most) {
		return fault.New(fault.Busy, "%d cells wait on this server, the most that may wait", most).
			WithHint("try again when some have run; list_sessions shows which of yours have cells waiting")
	}
	return nil
}

// count adds the cell to those that wait, or takes it off.
func (e *Execution) count(waits bool) {
	if e.counted == waits {
		return
	}
	e.counted = waits
	n := int64(1)
	if !waits {
		n = -1
	}
	e.session.manager.waiting.Add(n)
}

// awaitTurn takes one of the places for running cells, and returns how to give it back. It returns nil when something else
// came first; the cell then still waits in the queue, and says why.
func (s *session) awaitTurn() (done func()) {
	turns := s.manager.turns
	if turns == nil {
		return func() {}
	}
	done = func() { <-turns }
	select {
	case turns <- struct{}{}:
		return done
	default:
	}
	s.setCrowded(true)
	defer s.setCrowded(false)
	select {
	case turns <- struct{}{}:
		return done
	case o := <-s.orders:
		s.obey(o)
	case <-s.kernelDone(): // serve sees to it
	case <-s.ctx.Done():
	}
	return nil
}

func (s *session) setCrowded(crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crowded = crowded
}

// Crowded tells whether the cell waits only because the server runs as many cells as it may.
func (e *Execution) Crowded() bool {
	if e.session == nil {
		return false
	}
	e.session.mu.Lock()
	defer e.session.mu.Unlock()
	return e.session.crowded && len(e.session.queue) > 0 && e.session.queue[0] == e
}
