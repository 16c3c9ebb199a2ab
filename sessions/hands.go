package sessions

import (
	"sync"
	"sync/atomic"
)

// hands run what each cell needs a goroutine for, on goroutines that then rest until the next: their stacks have grown to what cells
// and commits take already, which is dearer than the goroutine.
type hands struct {
	work    chan func() // taken by one that rests
	resting atomic.Int32
	quit    chan struct{}
	stop    func() // closes quit
	running sync.WaitGroup
}

// maxResting bounds those that rest.
const maxResting = 4

func newHands() *hands {
	h := &hands{work: make(chan func()), quit: make(chan struct{})}
	h.stop = sync.OnceFunc(func() { close(h.quit) })
	return h
}

// close returns when all goroutines have ended: those that rest at once, the others with what they run. run is not called any more.
func (h *hands) close() {
	h.stop()
	h.running.Wait()
}

// run runs f on a goroutine.
func (h *hands) run(f func()) {
	select {
	case h.work <- f:
	default:
		h.running.Add(1)
		go h.serve(f)
	}
}

func (h *hands) serve(f func()) {
	defer h.running.Done()
	for f != nil {
		f()
		f = h.next()
	}
}

// next waits for more work; nil means that there is none for this goroutine.
func (h *hands) next() func() {
	defer h.resting.Add(-1)
	if h.resting.Add(1) > maxResting {
		return nil
	}
	select {
	case f := <-h.work:
		return f
	case <-h.quit:
		return nil
	}
}
