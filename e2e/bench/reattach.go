package main

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"
)

// manyReattached is how many sessions come back together.
const manyReattached = 20

// measureReattach kills a server, starts the next one on its folder, and compares how long it takes until every session
// has answered with the start of a server that finds none.
func measureReattach(ctx context.Context, o options, dir string) (report, error) {
	var r report
	for _, n := range []int{1, manyReattached} {
		found, none, after, err := reattached(ctx, o, filepath.Join(dir, fmt.Sprintf("again%d", n)), n)
		if err != nil {
			return report{}, err
		}
		each := make([]float64, len(found))
		for i := range found {
			each[i] = (found[i] - none[i]) / float64(n)
		}
		r.add(report{
			rows: []row{{what: fmt.Sprintf("start after `kill -9` until %d of %d sessions have answered `x`", n, n), ours: "with kernels to find again",
				theirs: "start without, one call", a: found, b: none, unit: "ms"}},
			costs: []cost{
				{what: fmt.Sprintf("what each of %d sessions adds to that start, with its first call", n), value: median(each), unit: "ms"},
				{what: "of it the first call", value: median(after), unit: "ms"},
			},
		})
	}
	return r, nil
}

// reattached returns how long starts took, in milliseconds, that found n sessions again, and that found none; each until
// the last session, or a call without one, was answered; and how long the sessions' first calls took of that.
func reattached(ctx context.Context, o options, dir string, n int) (found, none, first []float64, err error) {
	args := []string{"--provisioner", "local"}
	srv, err := startServer(ctx, o, dir, args...)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { srv.stop() }()
	for i := range n {
		if err := srv.execute(ctx, fmt.Sprintf("again-%d", i), "x = 1"); err != nil {
			return nil, nil, nil, err
		}
	}
	for range o.rounds {
		took, err := bareStart(ctx, o, dir+"none", args)
		if err != nil {
			return nil, nil, nil, err
		}
		none = append(none, took)
		srv.end(syscall.SIGKILL)
		start := time.Now()
		next, err := startServer(ctx, o, dir, args...)
		if err != nil {
			return nil, nil, nil, err
		}
		srv = next
		for i := range n {
			begun := time.Now()
			if err := srv.execute(ctx, fmt.Sprintf("again-%d", i), "x"); err != nil { // fails on a fresh kernel
				return nil, nil, nil, err
			}
			first = append(first, milliseconds(begun))
		}
		found = append(found, milliseconds(start))
	}
	return found, none, first, nil
}

// bareStart starts a server that finds nothing, and kills it as well.
func bareStart(ctx context.Context, o options, dir string, args []string) (ms float64, err error) {
	start := time.Now()
	srv, err := startServer(ctx, o, dir, args...)
	if err != nil {
		return 0, err
	}
	defer srv.end(syscall.SIGKILL)
	_, err = srv.call(ctx, "list_sessions", nil)
	return milliseconds(start), err
}

func milliseconds(since time.Time) float64 {
	return float64(time.Since(since)) / float64(time.Millisecond)
}
