package mounts

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
)

// A file system that does not answer holds nobody up; of one that is slow the answer is taken.
func TestPatiently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		defer close(gone)
		begun := time.Now()
		err := Patiently(func() error { <-gone; return nil })
		if fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" || time.Since(begun) != Patience {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		missing := errors.New("missing")
		if err := Patiently(func() error { time.Sleep(Patience - time.Second); return missing }); !errors.Is(err, missing) {
			t.Errorf("what is slow is told as %v", err)
		}
	})
}
