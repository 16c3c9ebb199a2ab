package docker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

const (
	// doubt is how long a container may still appear of which the engine's answer was lost.
	doubt = 10 * time.Second
	// Between two attempts of the sweeper: an engine does not say when it is back.
	firstPause, lastPause = 250 * time.Millisecond, 10 * time.Second
)

// sweeper removes containers that could not be removed when they should have been, because the engine was away.
type sweeper struct {
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (s *sweeper) start(log *slog.Logger) {
	s.log = log
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

func (s *sweeper) stop() {
	s.cancel()
	s.wg.Wait()
}

// debt is a container to be removed, and what goes with it.
type debt struct {
	e    *engine
	name string
	// uncertain is true when its creation may still be under way.
	uncertain bool
	// clean removes what it has on this host. Podman makes a folder again that a late container is to mount.
	clean func() error
}

// owe removes a container in the background, again and again until it is gone. One whose creation may still be under way
// must stay away for a while: it can appear after it was not found, and even after it was removed (Podman).
func (s *sweeper) owe(d debt) {
	s.wg.Go(func() {
		defer d.clean()
		var away time.Time // since when it has been
		pause := firstPause
		for {
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
				if away.IsZero() {
					s.log.Warn("a container of a failed launch may be left", "container", d.name)
				}
				return
			}
			err := remove(s.ctx, d.e, d.name)
			switch {
			case err != nil && !cerrdefs.IsNotFound(err):
				pause = min(2*pause, lastPause)
			case !d.uncertain || !away.IsZero() && time.Since(away) > doubt:
				return
			case away.IsZero():
				away, pause = time.Now(), firstPause
			}
		}
	})
}

// discard removes a container whose launch failed. The caller's ctx may have ended; how long this takes is bounded.
func (p *Provisioner) discard(ctx context.Context, d debt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	err := errors.Join(remove(ctx, d.e, d.name), d.clean())
	if d.uncertain || err != nil && !cerrdefs.IsNotFound(err) {
		p.sweeper.owe(d)
	}
}

// remove ends and removes a container. The error is NotFound if there is none.
func remove(ctx context.Context, e *engine, name string) error {
	err := e.api.ContainerRemove(ctx, name, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsConflict(err) { // somebody else is removing it
		return nil
	}
	return err
}

// connectionLost reports whether err is that of the connection to the engine, not an answer of it.
func connectionLost(err error) bool {
	var op *net.OpError
	return client.IsErrConnectionFailed(err) || errors.As(err, &op) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
