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
	trimDelay = time.Second
	// heapBeside is what the heap may hold beside the journal and a message of any size before the collector works
	// harder, in bytes.
	heapBeside = 32 << 20
	// restPercent and burstPercent are how much garbage there may be, in per cent of what is in use and of the floor (debug.SetGCPercent):
	// 1 MB, and 8 MB while much passes, of which the collector would run for every second message.
	restPercent, burstPercent = 6, 50
)

// heapFloor is memory that is never touched, and so takes none. The collector counts it.
//
//nolint:unused // it is held, and never read
var heapFloor []byte

// tune sets the runtime up for a process that is idle nearly always and of which there are many.
func tune(c stream.Config) {
	runtime.GOMAXPROCS(2)
	heapFloor = make([]byte, 16<<20)
	debug.SetGCPercent(restPercent)
	debug.SetMemoryLimit(c.JournalBytes + c.MaxMessage + heapBeside + int64(len(heapFloor)))
}

// trimmer gives memory back to the system after much of it was freed, and lets more garbage be until then.
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
	debug.SetGCPercent(burstPercent)
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
	debug.SetGCPercent(restPercent)
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
