package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measurePool compares the first call of a new session whose kernel comes from the pool with later calls of the same
// session; and so for a session that has files already.
func measurePool(ctx context.Context, o options, dir string) (report, error) {
	return poolOf(ctx, o, filepath.Join(dir, "pool"), "in a sandbox", "--provisioner", "local")
}

func measurePoolDocker(ctx context.Context, o options, dir string) (report, error) {
	return poolOf(ctx, o, filepath.Join(dir, "poold"), "in a container", "--provisioner", "docker", "--docker-host", os.Getenv("CELLBLOCK_TEST_DOCKER_HOST"))
}

func poolOf(ctx context.Context, o options, dir, where string, args ...string) (report, error) {
	srv, err := startServer(ctx, o, dir, append(args, "--pool-size", "1")...)
	if err != nil {
		return report{}, err
	}
	defer srv.stop()
	fresh := row{what: "first `1+1` of a session from the pool, " + where, ours: "MCP client", theirs: "the same session, warm", unit: "ms", goal: 2}
	rested := fresh
	rested.theirs = "the same session, warm, after a second's rest"
	filed := row{what: "the same, of a session that has 20 files", ours: fresh.ours, theirs: fresh.theirs, unit: "ms", goal: 2}
	for round := range 2 * (o.rounds + 1) {
		id, into := fmt.Sprintf("pooled-%d", round), &fresh
		if round%2 == 1 {
			into = &filed
			if err := srv.putFiles(ctx, id, 20); err != nil {
				return report{}, err
			}
		}
		if err := srv.awaitPool(ctx); err != nil {
			return report{}, err
		}
		times, err := timed(o.cells+1, func() error { return srv.execute(ctx, id, "1+1") })
		if err != nil {
			return report{}, err
		}
		if round > 1 {
			into.a, into.b = append(into.a, times[0]), append(into.b, times[1:]...)
		}
		if into == &fresh {
			// The first cell comes when nothing else has run there for a while. This one does, too: in neither are the processors' caches warm.
			if err := wait(ctx, time.Second); err != nil {
				return report{}, err
			}
			late, err := timed(1, func() error { return srv.execute(ctx, id, "1+1") })
			if err != nil {
				return report{}, err
			}
			if round > 1 {
				rested.a, rested.b = append(rested.a, times[0]), append(rested.b, late...)
			}
		}
		if _, err := srv.call(ctx, "close_session", map[string]any{"session_id": id, "delete_files": true}); err != nil {
			return report{}, err
		}
	}
	return report{rows: []row{fresh, rested, filed}}, nil
}

// putFiles writes files into a session that has no kernel yet.
func (s *server) putFiles(ctx context.Context, session string, n int) error {
	for i := range n {
		_, err := s.call(ctx, "write_file", map[string]any{
			"session_id": session, "path": fmt.Sprintf("%d.txt", i), "content": "text",
		})
		if err != nil {
			return err
		}
	}
	return nil
}
