package sessions

import (
	"context"
	"fmt"

	"cellblock/internal/fault"
)

// Leave ends this process's work on all sessions, as Shutdown does, but leaves kernels running for the next process, which
// finds them by Recover: cells that run go on in them. It returns how many it left. Stopped are the kernels of sessions with
// a minted id that nobody has come back to, and those that the store could not tell anybody of.
func (m *Manager) Leave(ctx context.Context) (left int, err error) {
	why := &ending{kind: fault.Unavailable, cause: stopping, saves: true}
	m.mu.Lock()
	m.leaving = why
	m.mu.Unlock()
	err = m.endAll(ctx, why)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left, err
}

// stopping is why sessions end with the process, as it is told afterwards.
const stopping = "the server was stopped"

// leave ends the session in this process and leaves its kernel running, if that is wanted and can be. One whose kernel has
// ended, and that nobody has told of that yet, is left as well: the next process tells why.
func (s *session) leave(why *ending) (left bool, err error) {
	runs := s.leaves(why)
	if !runs && !s.leavesNews(why) {
		return false, nil
	}
	if err := s.flush(context.Background()); err != nil && !(runs && s.isStored(err)) {
		s.log.Warn("the kernel is stopped, because the next start could not find it", "error", err)
		return false, nil
	}
	if s.kernel != nil {
		// The connection goes first: what comes now is not acknowledged, and comes again.
		_ = s.kernel.client.Close()
		err = s.kernel.handle.Close()
		s.kernel = nil
	}
	s.manager.workspaces.Leave(s.key.workspace())
	_ = s.saver.close(context.Background(), storeTime) // it has been logged
	if runs {
		s.manager.mu.Lock()
		s.manager.left++
		s.manager.mu.Unlock()
	}
	return true, err
}

// isStored tells whether the store knows of the kernel, though an error keeps it from knowing all that it did: then the next process
// finds it, as it does after a kill, and the variables are worth more than what is missing. With a Conflict nothing is owed any more,
// saved or not.
func (s *session) isStored(err error) bool {
	return fault.KindOf(err) != fault.Conflict && !s.saver.owes(s.begun)
}

// leavesNews tells whether the end of the session's last kernel is yet to be told.
func (s *session) leavesNews(why *ending) bool {
	if !s.manager.isLeaving(why) || s.saver == nil || s.kernel != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.news) > 0 && !s.unclaimed()
}

// leaves tells whether a session that ends for a reason leaves its kernel running, as far as that is known now. One that
// has not come to look for the kernel of an earlier process leaves that.
func (s *session) leaves(why *ending) bool {
	if !s.manager.isLeaving(why) || s.saver == nil || !s.untouched && (s.kernel == nil || s.kernelGone()) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unclaimed()
}

// isLeaving tells whether a reason is that of Leave.
func (m *Manager) isLeaving(why *ending) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving == why
}

// left tells whether the cell goes on without this process. Whoever waits for it is told how to read on.
func (r *run) left() bool {
	s := r.s
	if s.ctx.Err() == nil || !r.cutOff || r.replaced != "" {
		return false
	}
	if !s.leaves(s.whyEnding()) {
		return false
	}
	r.e.part(fault.New(fault.Unavailable, "%s; this cell goes on in its kernel", stopping).
		WithHint("when the server is back, get_execution(session_id=%q, execution_id=%d) reads how it goes on", s.key.id, r.e.number))
	return true
}

// part ends the cell for whoever waits for it here, but not in the store.
func (e *Execution) part(err error) {
	e.mu.Lock()
	if e.ending {
		e.mu.Unlock()
		return
	}
	e.ending, e.phase, e.err = true, PhaseEnded, err
	e.record.end()
	e.mu.Unlock()
	close(e.done)
}

// endAll ends all sessions at once, side by side.
func (m *Manager) endAll(ctx context.Context, why *ending) error {
	m.mu.Lock()
	m.closed = true
	m.pool.cancel()
	for _, s := range m.sessions {
		s.close(why, false)
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() {
		m.running.Wait()
		m.hands.close()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.sessions) == 0 {
			return nil // what else ends is nobody's
		}
		return fmt.Errorf("%d sessions are still stopping: %w", len(m.sessions), context.Cause(ctx))
	}
}
