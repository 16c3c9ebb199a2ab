package docker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

const (
	// createTime bounds how long an engine may take to create a container of an image that it has.
	createTime = time.Minute
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

// creation is a container that an engine was asked to create. It is not given up half-way: of one whose client has gone,
// Podman keeps what its API can neither list nor remove, and that breaks the listing of all others.
type creation struct {
	done     chan struct{} // closed when the engine has answered
	response container.CreateResponse
	err      error
}

// create asks for a container. Ending ctx does not end the request; discard then removes what comes of it.
func (s *sweeper) create(ctx context.Context, e *engine, config *container.Config, host *container.HostConfig, name string) *creation {
	c := &creation{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	unwatch := context.AfterFunc(s.ctx, func() { time.AfterFunc(doubt, cancel) })
	s.wg.Go(func() {
		defer close(c.done)
		defer cancel()
		defer unwatch()
		c.response, c.err = e.api.ContainerCreate(ctx, config, host, nil, nil, name)
	})
	return c
}

// wait returns the engine's answer, or ctx's error when that ends first.
func (c *creation) wait(ctx context.Context) (container.CreateResponse, error) {
	select {
	case <-c.done:
		return c.response, c.err
	case <-ctx.Done():
		return container.CreateResponse{}, ctx.Err()
	}
}

// pending tells whether the engine has not answered yet.
func (c *creation) pending() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// created is the creation of a container that has long been there.
var created = func() *creation {
	c := &creation{done: make(chan struct{})}
	close(c.done)
	return c
}()

// debt is a container to be removed, and what goes with it.
type debt struct {
	e        *engine
	name     string
	creation *creation
	// clean removes what it has on this host. Podman makes a folder again that a late container is to mount.
	clean func() error
}

// owe removes a container in the background, again and again until it is gone. One of whose creation the engine's answer
// was lost must stay away for a while: it can appear after it was not found, and even after it was removed (Podman).
func (s *sweeper) owe(d debt) {
	s.wg.Go(func() {
		defer func() {
			if err := d.clean(); err != nil {
				s.log.Warn("what a container had on this host is left", "container", d.name, "error", err)
			}
		}()
		<-d.creation.done
		var away time.Time // since when it has been
		for pause := firstPause; ; {
			err := d.remove(s.ctx)
			switch {
			case err != nil && !cerrdefs.IsNotFound(err):
				pause = min(2*pause, lastPause)
			case d.creation.err == nil || !away.IsZero() && time.Since(away) > doubt:
				return
			case away.IsZero():
				away, pause = time.Now(), firstPause
			}
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
				if away.IsZero() {
					s.log.Warn("a container that was to be removed may be left", "container", d.name)
				}
				return
			}
		}
	})
}

// discard removes a container whose launch failed. The caller's ctx may have ended; how long this takes is bounded.
func (p *Provisioner) discard(ctx context.Context, d debt) {
	if d.creation.pending() {
		p.sweeper.owe(d)
		return
	}
	err := errors.Join(d.remove(ctx), d.clean())
	if d.creation.err != nil || err != nil && !cerrdefs.IsNotFound(err) {
		p.sweeper.owe(d)
	}
}

// remove is tried also while everything ends.
func (d debt) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	return remove(ctx, d.e, d.name)
}

// remove ends and removes a container. The error is NotFound if there is none.
func remove(ctx context.Context, e *engine, name string) error {
	options := container.RemoveOptions{Force: true, RemoveVolumes: true}
	err := e.api.ContainerRemove(ctx, name, options)
	if err != nil && strings.Contains(err.Error(), endedMeanwhile) {
		err = e.api.ContainerRemove(ctx, name, options)
	}
	if cerrdefs.IsConflict(err) { // somebody else is removing it
		return nil
	}
	return err
}

// endedMeanwhile is what Podman says where a container ends by itself just when it is killed to be removed, which leaves it there.
const endedMeanwhile = "container state improper"

// connectionLost reports whether err is that of the connection to the engine, not an answer of it.
func connectionLost(err error) bool {
	var op *net.OpError
	return client.IsErrConnectionFailed(err) || errors.As(err, &op) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
