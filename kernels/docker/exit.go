package docker

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"cellblock/internal/fault"
)

// exitOf is how a program in a container has ended. Whoever has read its output to the end may ask before the engine knows it: the
// engine tells by an event then. Podman's of 4.3 do not name the program, so there may be no other in the container. The container is
// given by its id: by name, an older one's end would do.
func (e *engine) exitOf(ctx context.Context, container, run string) (int, error) {
	if code, ended, err := e.exited(ctx, run); ended || err != nil {
		return code, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wanted := events.ListOptions{Filters: filters.NewArgs(filters.Arg("container", container))}
	if e.kind == KindDocker {
		// Docker answers before it listens. What it has told meanwhile it repeats: all that it still remembers since 1970.
		wanted.Since = "1"
	}
	news, failed := e.api.Events(ctx, wanted)
	// What has ended before the engine listened is in no event of Podman's.
	if code, ended, err := e.exited(ctx, run); ended || err != nil {
		return code, err
	}
	for {
		select {
		case event := <-news:
			if code, ended, err := exitIn(event, run); ended || err != nil {
				return code, err
			}
		case failure := <-failed:
			// An engine may be set up to tell nothing (Podman's events_logger = "none"), or have told before it was heard.
			if code, ended, err := e.exited(ctx, run); ended && err == nil {
				return code, nil
			}
			if errors.Is(failure, io.EOF) {
				failure = fault.New(fault.Unavailable, "the container engine tells no more, and a program of the build goes on: %w", failure).
					WithHint(`Podman with events_logger = "none" in containers.conf never tells: set it to "file". Else look at the engine's own log.`)
			}
			return 0, failure
		}
	}
}

// exited asks the engine whether a program has ended, and how.
func (e *engine) exited(ctx context.Context, run string) (code int, ended bool, err error) {
	inspect, err := e.api.ContainerExecInspect(ctx, run)
	return inspect.ExitCode, err == nil && !inspect.Running, err
}

// exitIn is how a program ended if that is what an event tells. The error is that it ended with its container.
func exitIn(event events.Message, run string) (code int, ended bool, err error) {
	said := event.Actor.Attributes
	switch event.Action {
	case events.ActionExecDie:
		if said["execID"] != run {
			return 0, false, nil
		}
		code, err = strconv.Atoi(said["exitCode"])
		return code, err == nil, err
	case "exec_died": // Podman
		if id := said["execID"]; id != "" && id != run {
			return 0, false, nil
		}
		code, err = strconv.Atoi(said["containerExitCode"])
		return code, err == nil, err
	case events.ActionDie, events.ActionDestroy, events.ActionRemove:
		return 0, false, errors.New("the container ended before the program in it")
	}
	return 0, false, nil
}
