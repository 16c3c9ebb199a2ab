package sessions

import (
	"cmp"
	"slices"
)

// Owned is a session with whose it is.
type Owned struct {
	Owner Owner
	Info
}

// All describes the running sessions of all owners, the last used first. It is for whoever operates the server: nothing of
// what a session holds is in it.
func (m *Manager) All() []Owned {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Owned
	for k, s := range m.sessions {
		if !s.ended() {
			all = append(all, Owned{k.owner, s.info()})
		}
	}
	slices.SortFunc(all, func(a, b Owned) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), cmp.Compare(a.Owner.Issuer, b.Owner.Issuer),
			cmp.Compare(a.Owner.Subject, b.Owner.Subject), cmp.Compare(a.ID, b.ID))
	})
	return all
}
