package viewer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What has rested happens at once; what comes again and again happens as often as it may; and nothing waits longer than its context.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := pace{every: 300 * time.Millisecond}, time.Now()
		var at []time.Duration
		for _, rest := range []time.Duration{0, 0, 0, 100, 1000, 0} {
			<-time.After(rest * time.Millisecond)
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(began)/time.Millisecond)
		}
		if want := []time.Duration{0, 300, 600, 900, 1900, 2200}; !slices.Equal(at, want) {
			t.Errorf("it happened at %v, want %v", at, want)
		}
		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(over)
		if err := p.wait(ctx); !errors.Is(err, over) {
			t.Errorf("the end of its context: %v", err)
		}
	})
}
