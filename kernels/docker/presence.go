package docker

import (
	"context"
	"sync"
)

// presence counts the connections that show that a container lives. Its zero value has none.
type presence struct {
	mu      sync.Mutex
	count   int
	nothing bool          // connections show nothing any more
	changed chan struct{} // closed and replaced when the first comes or the last goes; nil until somebody waits
}

// add counts one more connection until done is called.
func (p *presence) add() (done func()) {
	p.change(1)
	return func() { p.change(-1) }
}

func (p *presence) change(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.some()
	p.count += by
	p.tell(was)
}

// disregard has it count none from now on.
func (p *presence) disregard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.some()
	p.nothing = true
	p.tell(was)
}

func (p *presence) some() bool { return p.count > 0 && !p.nothing }

// tell wakes up who waits, if there were some and are none now, or the other way round.
func (p *presence) tell(was bool) {
	if was != p.some() && p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// state tells whether there is a connection, and what closes when that changes.
func (p *presence) state() (some bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.some(), p.changed
}

// awaitNone returns true once there is no connection, and false when ctx ends first.
func (p *presence) awaitNone(ctx context.Context) bool {
	for ctx.Err() == nil {
		some, changed := p.state()
		if !some {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// whileNone returns a context that ends when there is a connection. Stop must be called.
func (p *presence) whileNone(ctx context.Context) (none context.Context, stop func()) {
	none, cancel := context.WithCancel(ctx)
	some, changed := p.state()
	if some {
		cancel()
		return none, cancel
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-changed:
			cancel()
		case <-none.Done():
		}
	}()
	return none, func() {
		cancel()
		<-ended
	}
}
