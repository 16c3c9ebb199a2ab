package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/local"
)

// sessionLimits are those under which the server's kernels run by default.
var sessionLimits = kernels.Limits{Memory: 2 << 30, CPUs: 2, PIDs: 256, FileSize: 4 << 30, Tmp: 256 << 20, Files: 4096}

// measureWarm runs 1+1 in a warm kernel by jupyter_client, by our Client, by MCP over HTTP, and by our Client after an MCP
// message that asks for nothing, round by round. The last is what a server that cost nothing would take.
func measureWarm(ctx context.Context, o options, dir string) (report, error) {
	argv, err := json.Marshal(kernelstest.Python.Argv)
	if err != nil {
		return report{}, err
	}
	peer, err := startPeer(ctx, "e2e/bench/peers/jupyter_client_peer.py", string(argv))
	if err != nil {
		return report{}, err
	}
	defer peer.stop()
	ours, stop, err := startKernel(ctx, o, dir)
	if err != nil {
		return report{}, err
	}
	defer stop()
	srv, err := startServer(ctx, o, filepath.Join(dir, "srv"), "--provisioner", "local")
	if err != nil {
		return report{}, err
	}
	defer srv.stop()

	var theirMS, clientMS, mcpMS, bothMS []float64
	for round := range o.rounds + 1 {
		var batch []float64
		if err := peer.ask(strconv.Itoa(o.cells), &batch); err != nil {
			return report{}, err
		}
		direct, err := timed(o.cells, func() error { return execute(ctx, ours, "1+1") })
		if err != nil {
			return report{}, err
		}
		over, err := timed(o.cells, func() error { return srv.execute(ctx, "warm", "1+1") })
		if err != nil {
			return report{}, err
		}
		both, err := timed(o.cells, func() error {
			return errors.Join(srv.client.Ping(ctx), execute(ctx, ours, "1+1"))
		})
		if err != nil {
			return report{}, err
		}
		if round == 0 {
			continue // everything warms up
		}
		theirMS, clientMS = append(theirMS, batch...), append(clientMS, direct...)
		mcpMS, bothMS = append(mcpMS, over...), append(bothMS, both...)
	}
	stats, err := ours.Stats(ctx)
	if err != nil {
		return report{}, err
	}
	return report{
		rows: []row{
			{what: "`1+1`, warm kernel", ours: "client and shim", theirs: "jupyter_client on a bare kernel", a: clientMS, b: theirMS, unit: "ms", goal: 1},
			{what: "`1+1` by MCP over HTTP", ours: "MCP client", theirs: "Go client", a: mcpMS, b: clientMS, unit: "ms", goal: 1.15},
			{what: "`1+1` by MCP over HTTP", ours: "MCP client", theirs: "an MCP ping, then the Go client", a: mcpMS, b: bothMS, unit: "ms"},
		},
		costs: []cost{{what: fmt.Sprintf("memory of the shim beside a kernel after %d cells", len(clientMS)), value: float64(stats.ShimMemory) / 1e6, unit: "MB"}},
	}, nil
}

// timed calls f n times and returns how long each took, in milliseconds.
func timed(n int, f func() error) ([]float64, error) {
	times := make([]float64, n)
	for i := range times {
		start := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		times[i] = float64(time.Since(start)) / float64(time.Millisecond)
	}
	return times, nil
}

// startKernel launches a kernel without a server around it.
func startKernel(ctx context.Context, o options, dir string) (*kernels.Client, func(), error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = local.DefaultUID, local.DefaultUID
	}
	p, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "r"),
		ShimPath: filepath.Join(o.bin, "cellblock-shim"), UID: uid, GID: gid,
	})
	if err != nil {
		return nil, nil, err
	}
	workspace := filepath.Join(dir, "ws")
	if err := errors.Join(os.Mkdir(workspace, 0o700), os.Chown(workspace, uid, gid)); err != nil {
		return nil, nil, err
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	handle, err := p.Launch(ctx, kernels.Spec{ID: hex.EncodeToString(id), Kernelspec: kernelstest.Python, Workspace: workspace, Limits: sessionLimits})
	if err != nil {
		return nil, nil, err
	}
	stop := func() { _ = handle.Stop(context.WithoutCancel(ctx), time.Second); _ = p.Close() }
	c, err := kernels.Connect(ctx, handle, kernels.Options{})
	if err == nil {
		err = c.Ready(ctx)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return c, func() { _ = c.Close(); stop() }, nil
}

// execute runs one cell and waits for its end.
func execute(ctx context.Context, c *kernels.Client, code string) error {
	e, err := c.Execute(ctx, kernels.ExecuteRequest{Code: code, StoreHistory: true, StopOnError: true})
	if err != nil {
		return err
	}
	for {
		if _, err := e.Next(ctx); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	if r := e.Result(); r.Status != kernels.StatusOK {
		return fmt.Errorf("status %s", r.Status)
	}
	return nil
}
