package sessions

import (
	"testing"
	"testing/synctest"
)

// What comes is run at once, however much runs; a few goroutines rest then and run what comes next, and all are gone after close.
func TestHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHands()
		var begun, done int
		start := func() (end chan struct{}) {
			end = make(chan struct{})
			has := make(chan struct{})
			h.run(func() { close(has); <-end; done++ })
			<-has
			begun++
			return end
		}
		finish := func(ends ...chan struct{}) {
			for _, end := range ends {
				close(end)
				synctest.Wait() // one after the other: nothing else guards done
			}
		}
		rest := func(want int32) {
			t.Helper()
			if got := h.resting.Load(); got != want {
				t.Errorf("%d rest, want %d", got, want)
			}
		}
		var ends []chan struct{}
		for range 2 * maxResting {
			ends = append(ends, start())
		}
		rest(0)
		finish(ends...)
		rest(maxResting)
		last := start()
		rest(maxResting - 1)
		closed := make(chan struct{})
		go func() { h.close(); h.close(); close(closed) }()
		synctest.Wait()
		rest(0)
		select {
		case <-closed:
			t.Error("close has not waited for what runs")
		default:
		}
		finish(last)
		<-closed
		if done != begun {
			t.Errorf("%d of %d were run to their end", done, begun)
		}
	})
}
