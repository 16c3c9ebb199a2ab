package sessions

import "context"

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
	if err := ValidateID(id); err != nil {
		return StoredSession{}, err
	}
	return m.stored(ctx, o, id)
}
