package sessions

import "sync"

// watchers tells whoever looks at sessions when to look again. It keeps nothing of what changed, so that nobody is ever behind
// by more than one look, and it costs next to nothing where nobody looks. Its zero value works.
type watchers struct {
	mu    sync.Mutex
	waits map[key]chan struct{}
}

// Changed returns a channel that is closed when anything next changes about an owner's session: its state, its kernel, which
// cells there are and how far they are, what they ask for. An empty id stands for all sessions of the owner, and an empty
// owner beside it for those of everybody. Who takes the channel first and then looks misses nothing. What cells produce is told
// by their Executions.
func (m *Manager) Changed(o Owner, id string) <-chan struct{} {
	w := &m.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	k := key{o, id}
	if w.waits == nil {
		w.waits = map[key]chan struct{}{}
	}
	if w.waits[k] == nil {
		w.bound()
		w.waits[k] = make(chan struct{})
	}
	return w.waits[k]
}

// maxWaits bounds the sessions that channels are kept for. Nobody says when he looks no more, and ids may be anybody's invention.
const maxWaits = 10_000

// bound has everybody look again when there are too many: who still cares comes back. w.mu is held.
func (w *watchers) bound() {
	if len(w.waits) < maxWaits {
		return
	}
	for _, wait := range w.waits {
		close(wait)
	}
	clear(w.waits)
}

// tell has whoever looks at a session look again.
func (w *watchers) tell(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range []key{k, {k.owner, ""}, {}} {
		if wait := w.waits[at]; wait != nil {
			close(wait)
			delete(w.waits, at)
		}
	}
}

// changed tells those who look at the session that something about it has. It may be called with or without s.mu.
func (s *session) changed() { s.manager.watchers.tell(s.key) }
