package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// together is how many sessions start at once.
const together = 10

// measureCold compares the first call of a new session with a bare `docker run` of the same image under the same limits,
// up to the answer to 1+1.
func measureCold(ctx context.Context, o options, dir string) (report, error) {
	r := row{what: "first `1+1` of a cold session in a container", ours: overMCP, theirs: "docker run and jupyter_client", unit: "s", goal: 1.1}
	return coldOf(ctx, o, filepath.Join(dir, "cold"), 1, r)
}

// measureColdTogether is measureCold of many starts at once.
func measureColdTogether(ctx context.Context, o options, dir string) (report, error) {
	r := row{what: fmt.Sprintf("first `1+1` of each of %d cold sessions at once", together), ours: overMCP, theirs: "docker run and jupyter_client, as many", unit: "s", goal: 1}
	return coldOf(ctx, o, filepath.Join(dir, "cold10"), together, r)
}

// coldOf measures n starts at once, as a row, and throws the first round away.
func coldOf(ctx context.Context, o options, dir string, n int, r row) (report, error) {
	host := os.Getenv("CELLBLOCK_TEST_DOCKER_HOST")
	peerDir := dir + "p"
	if err := os.Mkdir(peerDir, 0o755); err != nil {
		return report{}, err
	}
	peer, err := startPeer(ctx, "e2e/bench/peers/container_peer.py", host, benchImage, peerDir)
	if err != nil {
		return report{}, err
	}
	defer peer.stop()
	srv, err := startServer(ctx, o, dir, "--provisioner", "docker", "--docker-host", host)
	if err != nil {
		return report{}, err
	}
	defer srv.stop()
	for round := range o.cold + 1 {
		var bare []float64
		if err := peer.ask(strconv.Itoa(n), &bare); err != nil {
			return report{}, err
		}
		ours, err := srv.coldStarts(ctx, fmt.Sprintf("cold-%d", round), n)
		if err != nil {
			return report{}, err
		}
		if round > 0 {
			r.a, r.b = append(r.a, ours...), append(r.b, bare...)
		}
	}
	return report{rows: []row{r}}, nil
}

// coldStarts starts n sessions at once, returns the seconds until each has answered, and closes them.
func (s *server) coldStarts(ctx context.Context, name string, n int) (each []float64, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			id, start := fmt.Sprintf("%s-%d", name, i), time.Now()
			failed := s.execute(ctx, id, "1+1")
			took := time.Since(start).Seconds()
			if failed == nil {
				_, failed = s.call(ctx, "close_session", map[string]any{"session_id": id})
			}
			mu.Lock()
			defer mu.Unlock()
			each = append(each, took)
			if failed != nil {
				err = failed
			}
		})
	}
	all.Wait()
	return each, err
}
