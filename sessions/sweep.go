package sessions

import (
	"context"
	"errors"
	"maps"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions/workspaces"
)

const (
	// sweepPause is how often what nobody uses is looked for, sweepGrace how long nothing may have used it: longer than
	// anything takes to start or to be handed over.
	sweepPause = 5 * time.Minute
	sweepGrace = 10 * time.Minute
	// orphanGrace is how long a kernel that nobody uses has to end by itself.
	orphanGrace = 2 * time.Second
)

// KeepSwept stops kernels and removes folders that nobody uses, now and every few minutes until ctx ends: what could not
// be stopped when it should have been, and what a process that was killed has left half made. Kernels and workspaces that
// the store knows of are left alone, and so is what was used a short while ago.
func (m *Manager) KeepSwept(ctx context.Context) {
	unused, unusedKept := unusedSince{}, unusedSince{}
	ticker := time.NewTicker(sweepPause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		m.sweepKernels(ctx, unused)
		m.workspaces.Sweep(time.Now().Add(-sweepGrace), func(k workspaces.Key) bool { return m.remembers(ctx, key{Owner(k.Owner), k.ID}) })
		m.workspaces.SweepKept(ctx, func(names map[string]bool) []string { return overdue(unusedKept, names) })
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// sweepKernels stops the kernels of this process's installation that nobody has used for the grace period. Unused says
// since when that is, by the kernel's id.
func (m *Manager) sweepKernels(ctx context.Context, unused unusedSince) {
	refs, err := m.cfg.Provisioner.List(ctx)
	var used map[string]bool
	if err == nil {
		used, err = m.kernelsInUse(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("kernels that nobody uses cannot be looked for", "error", err)
		}
		return
	}
	m.stopOwed(ctx)
	unneeded := map[string]kernels.Ref{}
	for _, ref := range refs {
		if id := ref.KernelID; !used[id] {
			unneeded[id] = ref
		}
	}
	for _, id := range overdue(unused, unneeded) {
		m.StopOrphan(ctx, unneeded[id])
	}
}

// unusedSince remembers since when nobody uses what is named.
type unusedSince map[string]time.Time

// overdue returns which of the names that nobody uses now nobody has used for the grace period, which begins when a name is
// among them for the first time.
func overdue[T any](u unusedSince, names map[string]T) (those []string) {
	maps.DeleteFunc(u, func(name string, _ time.Time) bool { _, there := names[name]; return !there })
	for name := range names {
		if u[name].IsZero() {
			u[name] = time.Now()
		}
		if time.Since(u[name]) >= sweepGrace {
			those = append(those, name)
		}
	}
	return those
}

// kernelsInUse are those of sessions that have one, those that wait in the pool, and those that the store knows of.
func (m *Manager) kernelsInUse(ctx context.Context) (map[string]bool, error) {
	used := map[string]bool{}
	if m.cfg.Store != nil {
		all, err := m.cfg.Store.Running(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range all {
			used[k.Generation.Ref.KernelID] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		if handle := s.launchedKernel(); handle != nil && s.hasKernel() {
			used[handle.Ref().KernelID] = true
		}
	}
	for _, id := range m.pool.ids() {
		used[id] = true
	}
	return used, nil
}

// ids are those of the kernels that wait.
func (p *pool) ids() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shelf := range p.shelves {
		for _, k := range shelf.ready {
			ids = append(ids, k.kernel.handle.Ref().KernelID)
		}
	}
	return ids
}

// StopOrphan stops a kernel that no session can use. What cannot be done is logged, and left to the next sweep.
func (m *Manager) StopOrphan(ctx context.Context, ref kernels.Ref) {
	if err := m.stopKernel(ctx, ref); err != nil {
		m.cfg.Logger.Warn("a kernel that belongs to no session could not be stopped", "kernel", ref.KernelID, "error", err)
		return
	}
	m.cfg.Logger.Info("stopped a kernel that belongs to no session", "kernel", ref.KernelID)
}

// stopKernel stops a kernel that this process does not use.
func (m *Manager) stopKernel(ctx context.Context, ref kernels.Ref) error {
	handle, err := m.cfg.Provisioner.Attach(ctx, ref)
	switch {
	case errors.Is(err, kernels.ErrGone): // it has ended since it was listed: to list takes away what it left
		_, err = m.cfg.Provisioner.List(ctx)
	case err == nil:
		err = errors.Join(handle.Stop(ctx, orphanGrace), handle.Close())
	}
	return err
}

// owe has a kernel stopped that cannot be reached now.
func (m *Manager) owe(ref kernels.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed = append(m.owed, ref)
}

// stopLater has a kernel that cannot be stopped now be stopped as soon as it can be reached, and returns what to tell of it.
func (s *session) stopLater(ref kernels.Ref, err error) error {
	s.log.Warn("a kernel cannot be stopped now, and is stopped later", "kernel", ref.KernelID, "error", err)
	s.manager.owe(ref)
	return fault.New(fault.Unavailable, "the kernel of session %q cannot be stopped now: %w", s.key.id, fault.WithoutPlaces(err)).
		WithHint("it is stopped as soon as it can be reached; the session has ended")
}

// stopOwed stops the kernels that could not be reached when they should have been stopped.
func (m *Manager) stopOwed(ctx context.Context) {
	m.mu.Lock()
	owed := m.owed
	m.owed = nil
	m.mu.Unlock()
	for _, ref := range owed {
		if err := m.stopKernel(ctx, ref); err != nil {
			m.owe(ref)
			continue
		}
		m.cfg.Logger.Info("stopped a kernel that could not be reached before", "kernel", ref.KernelID)
	}
}

// remembers tells whether a session runs in this process, or is in the store, or whether that cannot be found out.
func (m *Manager) remembers(ctx context.Context, k key) bool {
	m.mu.Lock()
	runs := m.sessions[k] != nil
	m.mu.Unlock()
	_, err := m.stored(ctx, k.owner, k.id)
	return runs || fault.KindOf(err) != fault.NotFound
}
