package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// measurePool compares the first call of a new session whose kernel comes from the pool with a later call of the same
// session.
func measurePool(ctx context.Context, o options, dir string) ([]row, error) {
	srv, err := startServer(ctx, o, filepath.Join(dir, "pool"), "--provisioner", "local")
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	var first, warm []float64
	for round := range o.rounds + 1 {
		if err := srv.awaitPool(ctx); err != nil {
			return nil, err
		}
		id := fmt.Sprintf("pooled-%d", round)
		times, err := timed(o.cells+1, func() error { return srv.execute(ctx, id, "1+1") })
		if err != nil {
			return nil, err
		}
		if round > 0 {
			first, warm = append(first, times[0]), append(warm, times[1:]...)
		}
	}
	return []row{{what: "first `1+1` of a session from the pool", ours: "MCP client", theirs: "the same session, warm",
		a: first, b: warm, unit: "ms", goal: 2}}, nil
}

// awaitPool waits until a kernel is ready.
func (s *server) awaitPool(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var r mcp.CallToolRequest
		r.Params.Name = "health"
		got, err := s.client.CallTool(ctx, r)
		if err != nil {
			return err
		}
		var health struct {
			Pool struct{ Ready map[string]int }
		}
		text, err := json.Marshal(got.StructuredContent)
		if err == nil {
			err = json.Unmarshal(text, &health)
		}
		if err != nil || health.Pool.Ready["python"] > 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
