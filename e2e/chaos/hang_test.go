//go:build linux

package chaos

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"
)

// notice is how long before the end of its patience a test looks at what hangs: while it still hangs.
const notice = 10 * time.Second

// await waits for what goes on at once. What has not ended shortly before ctx does hangs: what every goroutine does then,
// here and in the server, is written down, and nothing more can be learned from that server.
func (w *world) await(ctx context.Context, all *sync.WaitGroup) {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	end, _ := ctx.Deadline()
	select {
	case <-done:
		return
	case <-time.After(time.Until(end) - notice):
	}
	own := make([]byte, 4<<20)
	own = own[:runtime.Stack(own, true)]
	said := w.server.Log()
	w.t.Fatalf("%s: round %d: something hangs.\nThe server said:\n%s\nIt does:\n%s\nThis test does:\n%s", time.Now().Format(time.TimeOnly),
		w.rounds, last(said, 300), w.server.Stacks(w.t), own)
}

// last returns the last lines of a text.
func last(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
