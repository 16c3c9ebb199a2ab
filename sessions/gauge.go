package sessions

import (
	"context"
	"fmt"
	"time"

	"cellblock/internal/words"
	"cellblock/sessions/files"
)

// gauge watches how large a session's workspace is, while cells run. No engine bounds that here, so it is measured, the more
// often the less room is left: a cell that takes too much is stopped before it takes much more.
type gauge struct {
	size int64     // when it was last measured
	at   time.Time // when that was; zero: never
	took time.Duration
	// low is the smallest size since it is too large; 0 while it is not. Cells that make room must be let run.
	low int64
}

const (
	// fastestDisk is how fast a workspace may be expected to grow, in bytes per second, and overrun what that may be before
	// it is seen.
	fastestDisk = 2 << 30
	overrun     = 128 << 20
	// soonest and latest are how long a measurement is good for.
	soonest, latest = 100 * time.Millisecond, 2 * time.Second
	// slack is what may be added to one that is too large.
	slack = 16 << 20
	// overrunGrace is what each rung of the ladder has where a disk is filling up.
	overrunGrace = 500 * time.Millisecond
)

// due is when the workspace is to be measured next.
func (g *gauge) due(limit int64) time.Time {
	if g.at.IsZero() {
		return g.at
	}
	room := max(limit-g.size, 0) + overrun
	pause := min(max(time.Duration(float64(room)/fastestDisk*float64(time.Second)), soonest), latest)
	return g.at.Add(max(pause, 5*g.took))
}

// note takes a measurement, and tells whether a cell that began with another size has taken too much.
func (g *gauge) note(size, begin, limit int64) (tooMuch bool) {
	g.size = size
	if size <= limit {
		g.low = 0
		return false
	}
	most := limit
	if g.low > 0 {
		most = g.low + slack
	}
	if g.low == 0 || size < g.low {
		g.low = size
	}
	return size > most && size > begin
}

// gaugeWorkspace measures the workspace in the background, until stop is called.
func (r *run) gaugeWorkspace() (stop func()) {
	if !r.s.manager.measured() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.s.ctx)
	r.overran = make(chan int64, 1)
	w := gauging{run: r, begin: r.s.gauge.size, known: !r.s.gauge.at.IsZero()}
	stopped := make(chan struct{})
	// Most cells end before the first measurement is due, and cost no goroutine.
	first := time.AfterFunc(time.Until(w.due()), func() {
		defer close(stopped)
		select { // the cell goes first
		case <-w.sent:
			w.untilEnd(ctx)
		case <-ctx.Done():
		}
	})
	return func() {
		cancel()
		if !first.Stop() {
			<-stopped
		}
	}
}

// gauging measures the workspace while one cell runs.
type gauging struct {
	*run
	begin int64 // what it held when the cell began, if that is known
	known bool
}

func (w *gauging) due() time.Time { return w.s.gauge.due(w.s.manager.cfg.WorkspaceBytes) }

// untilEnd measures until the cell has ended or has taken too much, which it tells.
func (w *gauging) untilEnd(ctx context.Context) {
	for w.measure(ctx) {
		timer := time.NewTimer(time.Until(w.due()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// measure measures once, and tells whether to go on.
func (w *gauging) measure(ctx context.Context) (goOn bool) {
	s, limit := w.s, w.s.manager.cfg.WorkspaceBytes
	started := time.Now()
	size, err := s.manager.workspaces.Measure(ctx, s.key.workspace())
	if ctx.Err() != nil {
		return false
	}
	s.gauge.at = time.Now()
	s.gauge.took = s.gauge.at.Sub(started)
	if err != nil {
		s.log.Warn("the workspace cannot be measured", "error", files.Pathless(err))
		return false
	}
	if !w.known { // it is what earlier cells have left, or so it must be taken
		w.begin, w.known = size, true
	}
	tooMuch := s.gauge.note(size, w.begin, limit)
	s.setOverfull(size > limit, size)
	if tooMuch {
		w.overran <- size
	}
	return !tooMuch
}

// measured tells whether workspaces are measured.
func (m *Manager) measured() bool {
	return m.cfg.WorkspaceBytes > 0 && !m.workspaces.Away(context.Background())
}

// setOverfull notes whether the next cell must be told that there is too much.
func (s *session) setOverfull(is bool, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overfull = 0; is {
		s.overfull = size
	}
}

// weighAgain measures a workspace that held too much when it was last looked at, so that nobody is told what is over.
func (s *session) weighAgain() {
	s.mu.Lock()
	full := s.overfull > 0
	s.mu.Unlock()
	if !full {
		return
	}
	size, err := s.manager.workspaces.Measure(s.ctx, s.key.workspace())
	if err != nil {
		return
	}
	limit := s.manager.cfg.WorkspaceBytes
	s.gauge.at = time.Now()
	s.gauge.note(size, size, limit)
	s.setOverfull(size > limit, size)
}

// takeOverfull returns what the next cell must be told of a workspace that holds too much, once. The caller holds s.mu.
func (s *session) takeOverfull() string {
	size := s.overfull
	if s.overfull = 0; size == 0 {
		return ""
	}
	return fmt.Sprintf("The workspace holds %s, more than its limit of %s: cells that add to it are stopped. Delete files that are not needed.",
		words.Bytes(size), words.Bytes(s.manager.cfg.WorkspaceBytes))
}

// What bounds how much a workspace holds (Manager.WorkspaceBound).
const (
	// BoundByQuota: the file system refuses what would be too much. Cells are measured besides, because the owner of a file
	// can take it out of the quota where he has no user namespace of his own.
	BoundByQuota = "project quota"
	// BoundByMeasuring: cells that have written too much are interrupted.
	BoundByMeasuring = "measuring"
)

// WorkspaceBound says what bounds how much a workspace holds, "" if nothing does.
func (m *Manager) WorkspaceBound() string {
	switch {
	case !m.measured():
		return ""
	case m.workspaces.Quota() > 0:
		return BoundByQuota
	}
	return BoundByMeasuring
}
