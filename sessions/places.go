package sessions

import "sync"

// places are locks, one for each key that somebody holds or waits for. Who holds one may wait for an engine: that is felt
// by callers of the same session, and by nobody else.
type places struct {
	mu    sync.Mutex
	byKey map[key]*place
}

// place is a lock with how many have it or want it.
type place struct {
	sync.RWMutex
	users int
}

// lock takes k's place alone, until unlock is called.
func (p *places) lock(k key) (unlock func()) {
	l := p.enter(k)
	l.Lock()
	return func() {
		l.Unlock()
		p.leave(k, l)
	}
}

// share takes k's place together with others who share it, until unlock is called.
func (p *places) share(k key) (unlock func()) {
	l := p.enter(k)
	l.RLock()
	return func() {
		l.RUnlock()
		p.leave(k, l)
	}
}

func (p *places) enter(k key) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.byKey[k]
	if l == nil {
		l = &place{}
		if p.byKey == nil {
			p.byKey = map[key]*place{}
		}
		p.byKey[k] = l
	}
	l.users++
	return l
}

func (p *places) leave(k key, l *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(p.byKey, k)
	}
}
