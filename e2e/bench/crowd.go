package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"cellblock/kernels/kernelstest"
)

// beat is how often each session of a crowd runs a cell.
const beat = time.Second

// measureCrowd has many sessions run a cell a second each, and as many bare kernels that Python drives, in turn.
func measureCrowd(ctx context.Context, o options, dir string) (report, error) {
	n := min(o.crowd, max(1, room()/2))
	peer, err := startPeer(ctx, "e2e/bench/peers/crowd_peer.py", argument(kernelstest.Python.Argv), strconv.Itoa(n))
	if err != nil {
		return report{}, err
	}
	defer peer.stop()
	srv, err := startServer(ctx, o, filepath.Join(dir, "crowd"), "--provisioner", "local")
	if err != nil {
		return report{}, err
	}
	defer srv.stop()
	for i := range n {
		if err := srv.execute(ctx, sessionOf(i), "1+1"); err != nil {
			return report{}, err
		}
	}
	crowd := row{what: fmt.Sprintf("`1+1` once a second in each of %d sessions", n), ours: overMCP, theirs: "as many bare kernels, jupyter_client", unit: "ms", goal: 1.10, tail: 1.5}
	alone := row{what: "the same, all of them beside one of them", ours: overMCP, theirs: "one session", unit: "ms"}
	for range max(1, o.rounds/3) {
		theirs, err := peer.task(map[string]any{"code": "1+1", "times": 10, "interval": beat.Seconds()})
		if err != nil {
			return report{}, err
		}
		ours, err := srv.crowd(ctx, n, 10)
		if err != nil {
			return report{}, err
		}
		one, err := srv.crowd(ctx, 1, 10)
		if err != nil {
			return report{}, err
		}
		crowd.a, crowd.b = append(crowd.a, ours...), append(crowd.b, theirs...)
		alone.a, alone.b = append(alone.a, ours...), append(alone.b, one...)
	}
	return report{rows: []row{crowd, alone}}, nil
}

func sessionOf(i int) string { return fmt.Sprintf("crowd-%d", i) }

// crowd has n sessions run so many cells each, a beat apart and spread over it, and returns the milliseconds of them all.
func (s *server) crowd(ctx context.Context, n, cells int) (all []float64, err error) {
	var mu sync.Mutex
	var done sync.WaitGroup
	begin := time.Now().Add(beat / 2)
	for i := range n {
		done.Go(func() {
			for cell := range cells {
				at := begin.Add(time.Duration(i)*beat/time.Duration(n) + time.Duration(cell)*beat)
				failed := wait(ctx, time.Until(at))
				start := time.Now()
				if failed == nil {
					failed = s.execute(ctx, sessionOf(i), "1+1")
				}
				mu.Lock()
				all = append(all, milliseconds(start))
				if failed != nil {
					err = failed
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return all, err
}
