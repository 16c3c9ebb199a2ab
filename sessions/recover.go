package sessions

import (
	"context"
	"slices"
	"strings"

	"cellblock/kernels"
)

// Recover finds again the kernels that an earlier process in this one's place has left running, and takes up their sessions:
// it returns when each is connected, or known to be lost, or ctx ends; the sessions go on with that by themselves. It must be
// called before any session is used. Unknown are kernels that no session can use: nobody knows them, or their session was
// closed, has another kernel by now, or has a language that is not offered any more. They are for the caller to stop. Those
// whose session another process goes on with are neither.
//
// A kernel that the provisioner does not name is told of by its session, when that is used next.
func (m *Manager) Recover(ctx context.Context) (unknown []kernels.Ref, err error) {
	refs, err := m.cfg.Provisioner.List(ctx)
	if err != nil || len(refs) == 0 || m.cfg.Store == nil {
		return refs, err
	}
	all, err := m.cfg.Store.Running(ctx)
	if err != nil {
		return nil, err // rather left alone than stopped
	}
	known := map[string]StoredKernel{}
	for _, k := range all {
		known[k.Generation.Ref.KernelID] = k
	}
	var taken []*session
	for _, ref := range refs {
		k, ok := known[ref.KernelID]
		switch {
		case ok && k.Session.Held:
		case !ok || !m.offers(k.Session.Language):
			unknown = append(unknown, ref)
		default:
			if s := m.takeBack(k.Session); s != nil {
				taken = append(taken, s)
			}
		}
	}
	for _, s := range taken {
		select {
		case <-s.settled:
		case <-ctx.Done():
			return unknown, context.Cause(ctx)
		}
	}
	return unknown, nil
}

func (m *Manager) offers(language string) bool {
	_, ok := m.cfg.Runtimes[language]
	return ok
}

// takeOver makes a session of one that a process has left which does not live any more, if its kernel may run still. That
// process may have been another than the last in this one's place. It is nil otherwise.
func (m *Manager) takeOver(ctx context.Context, k key) *session {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	past, err := m.stored(ctx, k.owner, k.id)
	if err != nil || past.Held || !past.Closed.IsZero() || !m.offers(past.Language) {
		return nil
	}
	generations, err := m.cfg.Store.Generations(ctx, past.Ref)
	if n := len(generations); err != nil || n == 0 || !generations[n-1].Ended.IsZero() {
		return nil
	}
	return m.takeBack(past)
}

// takeBack makes a session of one in the store; what its runner does first is to look for its kernel. It is nil when
// everything ends.
func (m *Manager) takeBack(past StoredSession) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := key{past.Owner, past.ID}
	if s := m.sessions[k]; s != nil || m.closed {
		return s
	}
	return m.add(k, past.Language, false)
}

// mintedID tells whether an id may be one of mintID. The store does not know which were.
func mintedID(id string) bool {
	parts := strings.Split(id, "-")
	return len(parts) >= 3 && slices.Contains(adjectives, parts[0]) && slices.Contains(nouns, parts[1])
}
