//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
)

// shimTimeout bounds how long a shim may take to answer; it needs milliseconds.
const shimTimeout = 20 * time.Second

// awaitShim connects once and lets the shim introduce itself, so that a launch that came to nothing fails as one.
func awaitShim(ctx context.Context, h *handle) error {
	ctx, cancel := context.WithTimeout(ctx, shimTimeout)
	defer cancel()
	conn, err := h.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := stream.NewWriter(conn).WriteJSON(stream.FrameHello, stream.Hello{Version: stream.Version}); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	frame, err := stream.NewReader(conn, 64<<10).ReadFrame()
	if err != nil {
		return errors.Join(ctx.Err(), err)
	}
	var w stream.Welcome
	if frame.Type != stream.FrameWelcome || stream.DecodeJSON(frame.Payload, &w) != nil {
		return fmt.Errorf("frame %d instead of a welcome", frame.Type)
	}
	if w.Error != "" || w.Version != stream.Version || w.KernelID != h.entry.id {
		return fmt.Errorf("version %d, kernel %q, %q", w.Version, w.KernelID, w.Error)
	}
	return nil
}

// errMute is why a launch came to nothing whose sandbox had begun: the shim has ended, or speaks another language.
var errMute = errors.New("the shim does not answer")

// explain makes of what went wrong an error for people, with the end of the log.
func (l *launch) explain(ctx context.Context, err error) error {
	var known *fault.Error
	switch {
	case ended(ctx) != nil:
		return givenUp(ctx, "launch kernel "+l.spec.ID)
	case errors.As(err, &known):
		return err
	}
	e := fault.New(fault.Unavailable, "launch kernel %s: %w", l.spec.ID, err)
	if log := l.entry.logTail(); log != "" {
		e.Message += ": " + log
	}
	switch {
	case errors.Is(err, errIgnored):
		return e.WithHint("Lower or drop the limit, or allow limits that are not enforced (allow_unenforced).")
	case errors.Is(err, errMute):
		return e.WithHint("Call again; if it fails again, the operator must check that cellblock-shim is of the same version as cellblock.")
	}
	return e
}

// ended is ctx.Err, and does not let a timer that is late hide that the deadline is over.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// givenUp is the error of what ended because its caller's context did.
func givenUp(ctx context.Context, what string) error {
	err, kind := ended(ctx), fault.Cancelled
	if errors.Is(err, context.DeadlineExceeded) {
		kind = fault.Timeout
	}
	return fault.New(kind, "%s: given up: %w", what, err)
}
