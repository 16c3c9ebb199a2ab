package docker

import (
	"context"
	"io"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"cellblock/kernels/stream"
)

// Stop climbs the ladder until the container has ended, and removes it with all that belongs to it on this host: the
// shim is asked to shut its kernel down, gets SIGTERM at half of grace, and everything is killed when grace is over.
func (h *handle) Stop(ctx context.Context, grace time.Duration) error {
	h.asked.Store(true)
	if grace > 0 {
		h.climb(ctx, grace)
	}
	// Removing by force kills first, and the engine returns when both are done.
	if err := remove(ctx, h.e, h.container); err != nil && !cerrdefs.IsNotFound(err) {
		return engineError(h.e.host, err)
	}
	select {
	case <-h.watched: // Exited is closed by now, unless the handle was closed before
	case <-ctx.Done():
	}
	return h.carrier.remove()
}

// climb returns when the container has ended, grace is over or ctx ends.
func (h *handle) climb(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	asked := make(chan struct{})
	defer func() { <-asked }()
	defer cancel()
	go func() {
		defer close(asked)
		h.ask(ctx, grace/2)
	}()
	if h.ended(ctx, grace/2) {
		return
	}
	if err := h.e.api.ContainerKill(ctx, h.container, "SIGTERM"); err == nil {
		h.ended(ctx, grace)
	}
}

// ended waits for the container's end, for at most d.
func (h *handle) ended(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-h.exited:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// ask tells the shim to shut its kernel down and itself after it. It returns when the stream or ctx ends.
func (h *handle) ask(ctx context.Context, grace time.Duration) {
	conn, err := h.Dial(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	w := stream.NewWriter(conn)
	if w.WriteJSON(stream.FrameHello, stream.Hello{Version: stream.Version}) != nil {
		return
	}
	if w.WriteJSON(stream.FrameRequest, stream.Request{ID: 1, Op: stream.OpShutdown, GraceMS: grace.Milliseconds()}) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn) // what it still sends must not hold it up
}
