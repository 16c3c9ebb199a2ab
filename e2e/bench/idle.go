package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// kernelMemory is what a kernel takes that has done little, in bytes, and what is left of the host's memory to others.
const kernelMemory, reserve = 80 << 20, 2 << 30

// measureIdle tells what sessions cost that nobody uses: memory and goroutines of the server, and processor time.
func measureIdle(ctx context.Context, o options, dir string) (report, error) {
	n := o.sessions
	if room := int((numberIn("/proc/meminfo", "MemAvailable:")*1024 - reserve) / kernelMemory); n > room {
		n = max(1, room)
	}
	without, err := resting(ctx, o, filepath.Join(dir, "rest0"), 0)
	if err != nil {
		return report{}, err
	}
	with, err := resting(ctx, o, filepath.Join(dir, "rest"), n)
	if err != nil {
		return report{}, err
	}
	each := func(with, without float64) float64 { return (with - without) / float64(n) }
	r := report{costs: []cost{
		{what: fmt.Sprintf("memory of the server, per session at rest, of %d", n), value: each(with.memory, without.memory) / 1000, unit: "KB", goal: 100},
		{what: "goroutines of the server, per session at rest", value: each(with.goroutines, without.goroutines), goal: 8},
	}}
	for _, part := range []struct {
		what          string
		used, without usage
	}{{"the server", with.server, without.server}, {"shims", with.shims, without.shims}, {"kernels", with.kernels, without.kernels}} {
		used := part.used.minus(part.without)
		r.costs = append(r.costs,
			cost{what: fmt.Sprintf("processor time of %s in a minute, %d sessions at rest", part.what, n), value: used.cpu.Seconds() * 1000 / o.idle.Minutes(), unit: "ms"},
			cost{what: "and how often they wake up", value: float64(used.wakes) / o.idle.Minutes()})
	}
	if n < o.sessions {
		r.notes = append(r.notes, fmt.Sprintf("memory is short here: %d sessions instead of %d", n, o.sessions))
	}
	return r, nil
}

// rest is what was seen of a server with sessions that nobody uses.
type rest struct {
	memory, goroutines     float64
	server, shims, kernels usage
}

// resting starts n sessions, watches them while they rest, and ends all of it.
func resting(ctx context.Context, o options, dir string, n int) (r rest, err error) {
	args := []string{"--provisioner", "local"}
	srv, err := startServer(ctx, o, dir, args...)
	if err != nil {
		return r, err
	}
	defer func() { srv.stop() }()
	for i := range n + 1 {
		if err := srv.execute(ctx, fmt.Sprintf("rest-%d", i), "1+1"); err != nil {
			return r, err
		}
	}
	// The one more is closed again: it has warmed up what all sessions share.
	if _, err := srv.call(ctx, "close_session", map[string]any{"session_id": "rest-0"}); err != nil {
		return r, err
	}
	if err := settle(ctx, o.idle/2); err != nil {
		return r, err
	}
	pid := srv.cmd.Process.Pid
	all := familyOf(pid)
	server, shims, kernels := usageOf([]int{pid}), usageOf(all.shims), usageOf(all.kernels)
	if err := settle(ctx, o.idle); err != nil {
		return r, err
	}
	r.server, r.shims, r.kernels = usageOf([]int{pid}).minus(server), usageOf(all.shims).minus(shims), usageOf(all.kernels).minus(kernels)
	r.memory = anonymous(pid)
	r.goroutines = float64(strings.Count("\n"+srv.end(syscall.SIGQUIT), "\ngoroutine "))
	srv, err = startServer(ctx, o, dir, args...) // which finds the kernels again, and stops them with itself
	return r, err
}

// settle waits while nothing is done.
func settle(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
