package sessions

import (
	"context"
	"slices"
	"time"

	"cellblock/kernels"
)

// Recover finds again the kernels that an earlier process in this one's place has left running, and takes up their sessions:
// it returns when each is connected, or known to be lost, or ctx ends; the sessions go on with that by themselves. It must be
// called before any session is used. Unknown are kernels that no session can use: nobody knows them, or their session was
// closed, has another kernel by now, or has a language or a profile that is not offered any more. They are for the caller to stop. Those
// whose session another process goes on with are neither.
//
// A kernel that the provisioner does not name is told of by its session, when that is used next.
func (m *Manager) Recover(ctx context.Context) (unknown []kernels.Ref, err error) {
	refs, err := m.cfg.Provisioner.List(ctx)
	if err != nil || len(refs) == 0 || m.cfg.Store == nil {
		return refs, err
	}
	asOf := m.ends()
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
		case !ok || !m.offers(k.Session.choice()):
			unknown = append(unknown, ref)
		default:
			if s := m.takeBack(k.Session, asOf); s != nil {
				taken = append(taken, s)
			}
		}
	}
	return unknown, awaitSettled(ctx, taken)
}

// takeOver makes a session of one that a process has left which does not live any more: its kernel may run still, or nobody
// has told yet why it does not. That process may have been another than the last in this one's place. It is nil otherwise.
func (m *Manager) takeOver(ctx context.Context, k key) *session {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	asOf := m.ends()
	past, err := m.stored(ctx, k.owner, k.id)
	if err != nil || !m.orphaned(past) {
		return nil
	}
	return m.takeBack(past, asOf)
}

// takeOverTime is how long a list waits until it is known what became of the sessions that it has taken over.
const takeOverTime = 2 * time.Second

// takeOverAll is takeOver for the sessions of an owner that were used last.
func (m *Manager) takeOverAll(ctx context.Context, o Owner) {
	if m.cfg.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, takeOverTime)
	defer cancel()
	asOf := m.ends()
	all, err := m.cfg.Store.Unclosed(ctx, o)
	if err != nil {
		m.cfg.Logger.Warn("sessions that an earlier server has left cannot be looked for", "error", err)
		return
	}
	all = slices.DeleteFunc(all, func(past StoredSession) bool { return !m.orphaned(past) })
	var taken []*session
	for _, past := range all[:min(len(all), maxDormant)] {
		if s := m.takeBack(past, asOf); s != nil {
			taken = append(taken, s)
		}
	}
	_ = awaitSettled(ctx, taken) // what is not known by then is told as it was
}

// orphaned tells whether nobody has ended a session that has had a kernel, nor goes on with it.
func (m *Manager) orphaned(past StoredSession) bool {
	return !past.Held && past.Closed.IsZero() && past.Generations > 0 && m.offers(past.choice())
}

// ends counts the sessions that have ended: what was read of the store is as of then.
func (m *Manager) ends() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.past.count
}

// takeBack makes a session of one that was in the store as of so many ends; what its runner does first is to look for its
// kernel. It is nil for one that has ended since, which would come back as its own ghost, and when everything ends.
func (m *Manager) takeBack(past StoredSession, asOf int) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := key{past.Owner, past.ID}
	if s := m.sessions[k]; s != nil || m.closed || m.past.endedSince(k, asOf) {
		return s
	}
	return m.add(k, past.choice(), false, ahead{})
}
