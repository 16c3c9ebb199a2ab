package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/local"
)

// sessionLimits are those under which the server's kernels run by default.
var sessionLimits = kernels.Limits{Memory: 2 << 30, CPUs: 2, PIDs: 256, FileSize: 4 << 30, Tmp: 256 << 20, Files: 4096}

// orphanTime is how long a kernel goes on when what measured it was killed.
const orphanTime = 5 * time.Minute

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

// heapFloor is what package heapfloor gives the server, in which our client lives otherwise: its garbage collector does not run for
// every 4 MB either.
//
//nolint:unused // it is held, and never read
var heapFloor = make([]byte, 16<<20)

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
	handle, err := p.Launch(ctx, kernels.Spec{ID: hex.EncodeToString(id), Kernelspec: kernelstest.Python, Workspace: workspace, Limits: sessionLimits, Patience: orphanTime})
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
