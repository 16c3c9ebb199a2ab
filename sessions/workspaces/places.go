package workspaces

import (
	"sync"

	"cellblock/internal/keyed"
)

// places are locks, one for each key that somebody holds or waits for. Who holds one may wait for an engine: that is felt
// by callers of the same session, and by nobody else.
type places struct {
	byKey keyed.Values[Key, *sync.RWMutex]
}

// lock takes k's place alone, until unlock is called.
func (p *places) lock(k Key) (unlock func()) {
	l, leave := p.enter(k)
	l.Lock()
	return func() {
		l.Unlock()
		leave()
	}
}

// share takes k's place together with others who share it, until unlock is called.
func (p *places) share(k Key) (unlock func()) {
	l, leave := p.enter(k)
	l.RLock()
	return func() {
		l.RUnlock()
		leave()
	}
}

func (p *places) enter(k Key) (l *sync.RWMutex, leave func()) {
	return p.byKey.Use(k, func() *sync.RWMutex { return &sync.RWMutex{} })
}
