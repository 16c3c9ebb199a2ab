//go:build linux

package shim

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"cellblock/kernels/stream"
)

const (
	// trimAfter is how much must have been freed for memory to be given back to the system at once, in bytes. The
	// runtime does it by itself, but over minutes.
	trimAfter = 4 << 20
	// largeMessage is from where on a message that passes through counts, in bytes.
	largeMessage = 1 << 20
	// trimDelay lets a burst end first.
	trimDelay = 200 * time.Millisecond
	// heapBeside is what the heap may hold beside the journal and a message of any size before the collector works
	// harder, in bytes.
	heapBeside = 32 << 20
)

// tune sets the runtime up for a process that is idle nearly always and of which there are many.
func tune(c stream.Config) {
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(c.JournalBytes + c.MaxMessage + heapBeside)
}

// trimmer gives memory back to the system after much of it was freed.
type trimmer struct {
	mu    sync.Mutex
	freed int64
	timer *time.Timer
	wg    sync.WaitGroup
}

// add notes that so many bytes have become free.
func (t *trimmer) add(freed int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.freed += freed; t.freed < trimAfter || t.timer != nil {
		return
	}
	t.wg.Add(1)
	t.timer = time.AfterFunc(trimDelay, t.trim)
}

// passed notes a message of so many bytes, which will soon be garbage unless the journal keeps it.
func (t *trimmer) passed(size int64) {
	if size >= largeMessage {
		t.add(size)
	}
}

func (t *trimmer) trim() {
	defer t.wg.Done()
	t.mu.Lock()
	t.freed, t.timer = 0, nil
	t.mu.Unlock()
	debug.FreeOSMemory()
}

// close ends what add has begun.
func (t *trimmer) close() {
	t.mu.Lock()
	if t.timer != nil && t.timer.Stop() {
		t.wg.Done()
	}
	t.mu.Unlock()
	t.wg.Wait()
}
