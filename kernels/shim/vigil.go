//go:build linux

package shim

import (
	"sync"
	"time"
)

// vigil waits for servers. A kernel that none has come back to for long enough is nobody's any more, and would hold its
// memory for ever. What counts is what is heard: over a pair of pipes the end of a server is not noticed.
type vigil struct {
	patience time.Duration
	over     chan struct{} // closed when nothing was heard for so long

	mu    sync.Mutex
	timer *time.Timer // nil where patience has no end
	ended bool
}

// keepVigil begins to wait; a patience of 0 has no end.
func keepVigil(patience time.Duration) *vigil {
	v := &vigil{patience: patience, over: make(chan struct{})}
	if patience > 0 {
		v.timer = time.AfterFunc(patience, v.end)
	}
	return v
}

// heard notes that a server has said something.
func (v *vigil) heard() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.timer != nil && !v.ended {
		v.timer.Reset(v.patience)
	}
}

func (v *vigil) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		v.ended = true
		close(v.over)
	}
}

// close ends the waiting.
func (v *vigil) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	if v.timer != nil {
		v.timer.Stop()
	}
}
