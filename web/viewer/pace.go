package viewer

import (
	"context"
	"time"
)

// pace lets something happen at once when it has not for a while, and else not more often than once in every.
type pace struct {
	every time.Duration
	next  time.Time
}

// wait returns when it may happen again, or with the cause of ctx's end.
func (p *pace) wait(ctx context.Context) error {
	if left := time.Until(p.next); left > 0 {
		again := time.NewTimer(left)
		defer again.Stop()
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.next = time.Now().Add(p.every)
	return nil
}
