package audit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// lockPatience is how long a process waits for another one that writes or reads. None takes longer, unless it was
	// stopped in the middle or its disk hangs.
	lockPatience = 10 * time.Second
	// lockRetry is how often it looks: a lock on a file can be waited for only without a limit.
	lockRetry = 5 * time.Millisecond
)

// locked takes a lock within a time. Take is what tries to, again and again.
func locked(take func(context.Context, time.Duration) (bool, error), patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := take(ctx, lockRetry)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("another process has held its lock for %v", patience)
	}
	return err
}
