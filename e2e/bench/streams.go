package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"cellblock/kernels/kernelstest"
)

// streamCells produce much output.
var streamCells = []struct{ name, code string }{
	{"10,000 flushed prints", "for i in range(10_000): print(i, flush=True)"},
	{"20 MB of text", "print('0123456789' * 2_000_000)"},
	{"50 MB of PNG in 10 displays", `
from IPython.display import display
for _ in range(10): display({'image/png': 'A' * 5_000_000}, raw=True)`},
}

// measureStreams compares how long much output takes from kernel to client, all of it read, and tells what memory a server
// needs that keeps it.
func measureStreams(ctx context.Context, o options, dir string) (r report, err error) {
	peer, err := startPeer(ctx, "e2e/bench/peers/jupyter_client_peer.py", argument(kernelstest.Python.Argv))
	if err != nil {
		return report{}, err
	}
	defer peer.stop()
	folder := filepath.Join(dir, "streams")
	if err := os.Mkdir(folder, 0o711); err != nil {
		return report{}, err
	}
	client, stop, err := startKernel(ctx, o, folder)
	if err != nil {
		return report{}, err
	}
	defer stop()
	srv, err := startServer(ctx, o, filepath.Join(folder, "srv"), "--provisioner", "local")
	if err != nil {
		return report{}, err
	}
	defer srv.stop()
	ways := []way{
		{name: byClient, run: func(code string, n int) ([]float64, error) {
			return timed(n, func() error { return execute(ctx, client, code) })
		}},
		{name: theFloor, run: peer.run},
		{name: overMCP, run: func(code string, n int) ([]float64, error) {
			return timed(n, func() error { return srv.execute(ctx, "streams", code) })
		}},
	}
	o.cells = 1
	for _, cell := range streamCells {
		times, err := inTurn(o, ways, "", cell.code)
		if err != nil {
			return report{}, fmt.Errorf("%s: %w", cell.name, err)
		}
		r.rows = append(r.rows,
			row{what: cell.name + ", every output read", ours: byClient, theirs: theFloor, a: times[0], b: times[1], unit: "ms", goal: 1},
			row{what: cell.name + ", kept by the server", ours: overMCP, theirs: theFloor, a: times[2], b: times[1], unit: "ms"})
	}
	peak := float64(numberIn(fmt.Sprintf("/proc/%d/status", srv.cmd.Process.Pid), "VmHWM:")) / 1000
	r.costs = append(r.costs, cost{what: "most memory of the server with all of that", value: peak, unit: "MB", goal: 256})
	return r, nil
}
