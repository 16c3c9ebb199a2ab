package sessions

import (
	"cmp"
	"context"
	"slices"
	"time"

	"cellblock/kernels"
)

// Account is what is known of a session, alive or not, beside its cells.
type Account struct {
	ID string
	Choice
	// State is Closed when the session does not run; Ended is then since when, and Why why, in the words of a sentence's end.
	State State
	Ended time.Time
	Why   string
	// Created is its first cell's time, Used that of its last; Executions counts its cells.
	Created, Used time.Time
	Executions    int
	// Generations are its kernels, oldest first, as far as the store knows them.
	Generations []StoredGeneration
}

// Account describes one session of an owner, also one that has ended. It is NotFound when there was none.
func (m *Manager) Account(ctx context.Context, o Owner, id string) (Account, error) {
	s, err := m.read(ctx, o, id)
	if err == nil {
		if err := s.flush(ctx); err != nil {
			s.log.Warn("what the session did is not all in the store", "error", err)
		}
	}
	past, storeErr := m.stored(ctx, o, id)
	if err != nil && storeErr != nil {
		return Account{}, nowhere(err, storeErr)
	}
	a := accountOf(past)
	if err == nil {
		a = s.account()
	}
	if storeErr == nil {
		a.Generations, err = m.cfg.Store.Generations(ctx, past.Ref)
		a.close()
		return a, err
	}
	return a, nil
}

// Accounts describes all sessions of an owner, alive or not, without their generations: the last used first.
func (m *Manager) Accounts(ctx context.Context, o Owner) ([]Account, error) {
	var accounts []Account
	known := map[string]bool{}
	m.mu.Lock()
	for k, s := range m.sessions {
		if k.owner == o && !s.ended() {
			accounts, known[k.id] = append(accounts, s.account()), true
		}
	}
	m.mu.Unlock()
	if m.cfg.Store != nil {
		stored, err := m.cfg.Store.Sessions(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, past := range stored {
			if !known[past.ID] {
				accounts = append(accounts, accountOf(past))
			}
		}
	}
	slices.SortFunc(accounts, func(a, b Account) int {
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID))
	})
	return accounts, nil
}

func (s *session) account() Account {
	i := s.info()
	return Account{ID: i.ID, Choice: i.Choice, State: i.State, Created: i.Created, Used: i.LastUsed, Executions: i.Executions}
}

// accountOf is the account of a session in the store that does not run in this process.
func accountOf(past StoredSession) Account {
	a := Account{
		ID: past.ID, Choice: past.choice(), State: Closed, Ended: past.Closed, Why: past.Why,
		Created: past.Created, Used: past.Used, Executions: past.Executions,
	}
	switch {
	case past.Held && past.Closed.IsZero():
		a.State, a.Why = Idle, "it runs in another cellblock process"
	case past.Closed.IsZero():
		a.Ended, a.Why = past.Used, serverEnded
	}
	return a
}

// close gives an end to generations that nobody lived to write one of: all but the one that may run.
func (a *Account) close() {
	for i := range a.Generations {
		g := &a.Generations[i]
		last := i == len(a.Generations)-1
		switch {
		case !g.Ended.IsZero() || last && a.State != Closed:
		case last:
			g.Ended, g.Why = a.Ended, a.Why
		default:
			g.Ended, g.Why = a.Generations[i+1].Started, serverEnded
		}
	}
}

// Log returns the end of what a session's container or sandbox has logged, at most 16 KB; of a kernel that has ended
// nothing is left. It is NotFound when the session does not run.
func (m *Manager) Log(ctx context.Context, o Owner, id string) (string, error) {
	s, err := m.read(ctx, o, id)
	if err != nil {
		return "", err
	}
	handle := s.launchedKernel()
	if handle == nil {
		return "", nil
	}
	return handle.Logs(ctx), nil
}

// keepHandle remembers whom to ask for the log.
func (s *session) keepHandle(h kernels.Handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launched = h
}

// launchedKernel is the handle of the kernel that was launched last; nil before the first.
func (s *session) launchedKernel() kernels.Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launched
}
