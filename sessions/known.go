package sessions

import (
	"cmp"
	"context"
	"slices"

	"cellblock/internal/sessionid"
)

// Known describes all sessions of an owner that anything is kept of, those that do not run any more among them, the last used
// first. Without a Store there are none.
func (m *Manager) Known(ctx context.Context, o Owner) ([]StoredSession, error) {
	if m.cfg.Store == nil {
		return nil, nil
	}
	return m.cfg.Store.Sessions(ctx, o)
}

// KnownSession describes one session of an owner as it is kept, whether it runs or not; NotFound if there is nothing of it.
func (m *Manager) KnownSession(ctx context.Context, o Owner, id string) (StoredSession, error) {
	if err := sessionid.Validate(id); err != nil {
		return StoredSession{}, err
	}
	return m.stored(ctx, o, id)
}

// Ended counts the sessions of an owner that do not run and have had a cell, without those that were for one cell, and names those
// used last, at most limit. Without a Store there are none.
func (m *Manager) Ended(ctx context.Context, o Owner, limit int) (n int, last []string, err error) {
	if m.cfg.Store == nil {
		return 0, nil, nil
	}
	left, err := m.cfg.Store.Unclosed(ctx, o)
	if err != nil {
		return 0, nil, err
	}
	var names []StoredName
	without := Exclusion{IDs: m.living(o), Profiles: m.cfg.onceProfiles()}
	for _, past := range left { // by servers that were killed
		if past.Held || past.Executions == 0 || slices.Contains(without.IDs, past.ID) || slices.Contains(without.Profiles, past.Profile) {
			continue
		}
		names = append(names, StoredName{ID: past.ID, Used: past.Used})
		without.IDs = append(without.IDs, past.ID) // it may be closed by now
	}
	n, closed, err := m.cfg.Store.Closed(ctx, o, without, limit)
	n, names = n+len(names), append(names, closed...)
	slices.SortFunc(names, func(a, b StoredName) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
	for _, name := range names[:min(len(names), limit)] {
		last = append(last, name.ID)
	}
	return n, last, err
}

// living are the ids of an owner's sessions in this process.
func (m *Manager) living(o Owner) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.sessions {
		if k.owner == o && !s.ended() {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// onceProfiles are the profiles whose sessions are for one cell.
func (c *Config) onceProfiles() (names []string) {
	for name, p := range c.Profiles {
		if p.Once {
			names = append(names, name)
		}
	}
	return names
}
