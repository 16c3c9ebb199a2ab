package docker

import (
	"context"
	"io"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"cellblock/kernels/stream"
)

// settle is how long after the end of grace the shim may take to end itself, having killed its kernel.
const settle = 500 * time.Millisecond

// killTime is how long a killed container may take to end before it is removed by force, which kills it again.
const killTime = 5 * time.Second

// Stop climbs the ladder until the container has ended, and removes it with all that belongs to it on this host. The
// shim climbs it with its kernel: polite, TERM at half of grace, KILL at its end. It is told so over its stream, and by
// SIGTERM should it not hear; one that hears neither is killed with everything else.
func (h *handle) Stop(ctx context.Context, grace time.Duration) error {
	h.asked.Store(true)
	if grace > 0 {
		h.climb(ctx, grace)
	}
	if err := h.e.api.ContainerKill(ctx, h.container, "SIGKILL"); err == nil {
		h.ended(ctx, killTime) // removed before, it could not say any more how it ended
	}
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
	ctx, cancel := context.WithCancel(ctx)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		h.ask(ctx, grace)
	}()
	defer func() {
		cancel()
		<-asked
	}()
	if h.ended(ctx, grace/2) {
		return
	}
	if err := h.e.api.ContainerKill(ctx, h.container, "SIGTERM"); err == nil {
		h.ended(ctx, grace-grace/2+settle)
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
