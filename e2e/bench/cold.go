package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measureCold compares the first call of a new session with a bare `docker run` of the same image under the same limits,
// up to the answer to 1+1.
func measureCold(ctx context.Context, o options, dir string) (report, error) {
	host := os.Getenv("CELLBLOCK_TEST_DOCKER_HOST")
	peerDir := filepath.Join(dir, "p")
	if err := os.Mkdir(peerDir, 0o755); err != nil {
		return report{}, err
	}
	peer, err := startPeer(ctx, "e2e/bench/peers/container_peer.py", host, "cellblock-python:latest", peerDir)
	if err != nil {
		return report{}, err
	}
	defer peer.stop()
	srv, err := startServer(ctx, o, filepath.Join(dir, "cold"), "--provisioner", "docker", "--docker-host", host)
	if err != nil {
		return report{}, err
	}
	defer srv.stop()
	var ours, theirs []float64
	for i := range o.cold + 1 {
		var bare float64
		if err := peer.ask("", &bare); err != nil {
			return report{}, err
		}
		start := time.Now()
		if err := srv.execute(ctx, fmt.Sprintf("cold-%d", i), "1+1"); err != nil {
			return report{}, err
		}
		took := time.Since(start).Seconds()
		if i > 0 {
			ours, theirs = append(ours, took), append(theirs, bare)
		}
	}
	return report{rows: []row{{what: "first `1+1` of a cold session in a container", ours: "MCP client", theirs: "docker run and jupyter_client",
		a: ours, b: theirs, unit: "s", goal: 1.3}}}, nil
}
