package sessions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"cellblock/internal/fault"
	"cellblock/sessions/workspaces"
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

// maxForgets is how many sessions Forget deletes side by side: each may have a kernel to stop.
const maxForgets = 8

// Forget deletes all sessions of an owner for good: those that run and those that have ended, with their files and their history. It returns
// how many it has deleted. What the error speaks of is still there, and another Forget goes on with it; so it does with what the owner,
// who is not kept out, begins meanwhile. Of one of whom nothing is kept, it has deleted none.
func (m *Manager) Forget(ctx context.Context, o Owner) (deleted int, err error) {
	ids, _, err := m.idsOf(ctx, o)
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(ids))
	var closing sync.WaitGroup
	seats := make(chan struct{}, maxForgets)
	for i, id := range ids {
		seats <- struct{}{}
		closing.Go(func() {
			defer func() { <-seats }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = m.Close(ctx, o, id, CloseOptions{DeleteFiles: true, Operator: true})
			}
			if fault.KindOf(errs[i]) == fault.NotFound { // somebody else has deleted it meanwhile
				errs[i] = nil
			}
		})
	}
	closing.Wait()
	for _, err := range errs {
		if err == nil {
			deleted++
		}
	}
	return deleted, errors.Join(errs...)
}

// Holding counts what Forget would delete of an owner.
type Holding struct {
	// Sessions are all of which anything is kept, Running those among them that run. Cells is how many they have had.
	Sessions, Running, Cells int
}

// Holding looks at what Forget would delete, and leaves it alone.
func (m *Manager) Holding(ctx context.Context, o Owner) (Holding, error) {
	ids, known, err := m.idsOf(ctx, o)
	if err != nil {
		return Holding{}, err
	}
	h, cells := Holding{Sessions: len(ids)}, map[string]int{}
	for _, past := range known {
		cells[past.ID] = past.Executions
	}
	for _, s := range m.All() {
		if s.Owner == o {
			h.Running++
			cells[s.ID] = max(cells[s.ID], s.Executions) // the store may be a moment behind
		}
	}
	for _, n := range cells {
		h.Cells += n
	}
	return h, nil
}

// idsOf are all ids that anything is kept under for an owner, sorted, and what the store knows of them.
func (m *Manager) idsOf(ctx context.Context, o Owner) (ids []string, known []StoredSession, err error) {
	ids = m.living(o)
	if known, err = m.Known(ctx, o); err != nil {
		return nil, nil, err
	}
	for _, past := range known {
		ids = append(ids, past.ID)
	}
	further, err := m.workspaces.IDs(workspaces.Owner(o)) // of files that were put there before any cell
	ids = append(ids, further...)
	slices.Sort(ids)
	return slices.Compact(ids), known, err
}
