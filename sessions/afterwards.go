package sessions

import (
	"sync"
	"time"
)

// afterwards is work on the disk for which nobody waits. A goroutine that the disk keeps waiting keeps a processor from the others for
// a moment, so it is begun when the session rests: not beside its cell, nor beside the answer. Only the runner uses it.
type afterwards struct {
	due   []func()
	doing sync.WaitGroup
}

// restBefore is how long a session rests before it begins what is due.
const restBefore = 100 * time.Millisecond

func (a *afterwards) add(work func()) { a.due = append(a.due, work) }

// timer fires when what is due is to be begun; it is nil if nothing is.
func (a *afterwards) timer() <-chan time.Time {
	if len(a.due) == 0 {
		return nil
	}
	return time.After(restBefore)
}

// begin does what is due, one thing after the other, without the caller.
func (a *afterwards) begin() {
	due := a.due
	a.due = nil
	a.doing.Go(func() {
		for _, work := range due {
			work()
		}
	})
}

// finish returns when nothing is due any more.
func (a *afterwards) finish() {
	if len(a.due) > 0 {
		a.begin()
	}
	a.doing.Wait()
}
