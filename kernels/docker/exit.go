package docker

import (
	"context"
	"errors"
	"strconv"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// exitOf is how a program in a container has ended. Whoever has read its output to the end may ask before the engine knows it: the
// engine tells by an event then. Podman's of 4.3 do not name the program, so there may be no other in the container.
func (e *engine) exitOf(ctx context.Context, container, run string) (int, error) {
	if code, ended, err := e.exited(ctx, run); ended || err != nil {
		return code, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news, failed := e.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(filters.Arg("container", container))})
	// What has ended before the engine listened is in no event.
	if code, ended, err := e.exited(ctx, run); ended || err != nil {
		return code, err
	}
	for {
		select {
		case event := <-news:
			if code, ended, err := exitIn(event, run); ended || err != nil {
				return code, err
			}
		case err := <-failed:
			return 0, err
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
