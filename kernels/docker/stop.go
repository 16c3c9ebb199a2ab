package docker

import (
	"context"
	"time"

	cerrdefs "github.com/containerd/errdefs"
)

// killTime is how long a killed container may take to end before it is removed by force, which kills it again.
const killTime = 5 * time.Second

// Stop ends the container and removes it with all that belongs to it on this host. SIGTERM makes the shim ask its kernel
// to end, and another one makes it send TERM on. It is not asked over its stream, which is the client's: the client would
// be cut off and not see how its kernel ends. What is left when grace is over is killed.
func (h *handle) Stop(ctx context.Context, grace time.Duration) error {
	h.asked.Store(true)
	h.presence.disregard() // nobody may be reading from a connection any more
	if grace > 0 {
		h.signal(ctx, "SIGTERM", grace/2)
		h.signal(ctx, "SIGTERM", grace/2)
	}
	h.signal(ctx, "SIGKILL", killTime) // once removed, it could not say any more how it ended
	// A caller whose time is over wants it gone no less.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	if err := remove(ctx, h.e, h.container); err != nil && !cerrdefs.IsNotFound(err) {
		if connectionLost(err) {
			h.p.sweeper.owe(debt{e: h.e, name: h.container, creation: created, clean: h.carrier.remove})
		}
		return engineError(h.e.host, err)
	}
	select {
	case <-h.watched: // Exited is closed by now, unless the handle was closed before
	case <-ctx.Done():
	}
	return h.carrier.remove()
}

// signal sends a signal to the container's first process and waits for its end, for at most d.
func (h *handle) signal(ctx context.Context, name string, d time.Duration) {
	select {
	case <-h.exited:
		return
	default:
	}
	if err := h.e.api.ContainerKill(ctx, h.container, name); err != nil {
		return // it has ended, or the engine is away, which removing it will tell
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-h.exited:
	case <-timer.C:
	case <-ctx.Done():
	}
}
