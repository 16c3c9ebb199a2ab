package mounts

import (
	"context"
	"time"

	"cellblock/internal/fault"
)

// Patience is how long a look at folders of this host may take.
const Patience = 5 * time.Second

// Patiently returns what a look at folders finds. The error is Unavailable when that takes longer than Patience: the file system of a
// machine that is gone answers nobody, ever. Such a look cannot be ended, and stays behind; nothing that it writes may be read then.
func Patiently(look func() error) error {
	ctx, cancel := patient(context.Background(), "a folder")
	defer cancel()
	_, err := await(ctx, func() (struct{}, error) { return struct{}{}, look() })
	return err
}

// patient bounds a context by Patience, and says what did not answer.
func patient(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	late := fault.New(fault.Unavailable, "%s does not answer within %s", what, Patience).
		WithHint("Look at each with: ls FOLDER. A file system of another machine may be gone: mount it again, or unmount it.")
	return context.WithTimeoutCause(ctx, Patience, late)
}

// await returns what a look finds, or why its context is done: then the look stays behind.
func await[T any](ctx context.Context, look func() (T, error)) (T, error) {
	type finding struct {
		what T
		err  error
	}
	found := make(chan finding, 1)
	go func() {
		what, err := look()
		found <- finding{what, err}
	}()
	select {
	case f := <-found:
		return f.what, f.err
	case <-ctx.Done():
		var nothing T
		return nothing, context.Cause(ctx)
	}
}
