package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels/kernelstest"
)

// warmCells are what sessions run again and again.
var warmCells = []struct{ name, setup, code string }{
	{"`pass`", "", "pass"},
	{"`1+1`", "", "1+1"},
	{"a DataFrame of 100 rows", "import pandas as pd; df = pd.DataFrame({c: range(100) for c in 'abcde'})", "df"},
	{"a small plot", "import matplotlib.pyplot as plt", "plt.plot([1, 3, 2]); plt.show()"},
}

// way is one way to have a cell executed.
type way struct {
	name string
	run  func(code string, times int) ([]float64, error)
	slow bool // it takes seconds, and needs no warming up
	goal float64
	tail float64
}

// The names of ways that rows are about.
const (
	overMCP   = "MCP over HTTP"
	byMCPGo   = "MCP over HTTP by mcp-go's client"
	byClient  = "Go client and shim"
	theFloor  = "jupyter_client, our kernel"
	listFirst = "a list of templates by MCP, then the Go client"
)

// measureWarm has each cell executed in a warm kernel in every way that is here, round by round.
func measureWarm(ctx context.Context, o options, dir string) (r report, err error) {
	ways, stop, notes, err := waysTo(ctx, o, dir)
	defer stop()
	if err != nil {
		return report{}, err
	}
	r.notes = notes
	for _, cell := range warmCells {
		times, err := inTurn(o, ways, cell.setup, cell.code)
		if err != nil {
			return report{}, fmt.Errorf("%s: %w", cell.name, err)
		}
		for i, w := range ways[1:] {
			r.rows = append(r.rows, row{what: cell.name, ours: overMCP, theirs: w.name, a: times[0], b: times[i+1], unit: "ms", goal: w.goal, tail: w.tail})
		}
		r.rows = append(r.rows, row{what: cell.name, ours: byClient, theirs: theFloor, a: times[1], b: times[2], unit: "ms", goal: 0.95})
	}
	return r, nil
}

// inTurn returns what a cell took in each way, in milliseconds. The first round warms everything up, and is thrown away.
func inTurn(o options, ways []way, setup, code string) (times [][]float64, err error) {
	times = make([][]float64, len(ways))
	for round := range o.rounds + 1 {
		for i, w := range ways {
			n, what := o.cells, code
			if w.slow { // it remembers nothing
				n, what = 1, setup+"\n"+code
			}
			if round == 0 && setup != "" && !w.slow {
				if _, err := w.run(setup, 1); err != nil {
					return nil, fmt.Errorf("%s: %w", w.name, err)
				}
			}
			each, err := w.run(what, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				times[i] = append(times[i], each...)
			}
		}
	}
	return times, nil
}

// waysTo starts all that can be started here: MCP first, then our client and the floor. Notes name what is missing.
func waysTo(ctx context.Context, o options, dir string) (ways []way, stop func(), notes []string, err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	srv, err := startServer(ctx, o, filepath.Join(dir, "srv"), "--provisioner", "local")
	if err != nil {
		return nil, stop, nil, err
	}
	stops = append(stops, srv.stop)
	client, stopKernel, err := startKernel(ctx, o, dir)
	if err != nil {
		return nil, stop, nil, err
	}
	stops = append(stops, stopKernel)
	post := poster{srv.url, srv.token}
	ways = []way{
		{name: overMCP, run: func(code string, n int) ([]float64, error) {
			return timed(n, func() error {
				return post.call(ctx, "execute_python", map[string]any{"code": code, "session_id": "warm"})
			})
		}},
		{name: byClient, goal: 1.15, run: func(code string, n int) ([]float64, error) {
			return timed(n, func() error { return execute(ctx, client, code) })
		}},
	}
	peers, missing := peersHere(filepath.Join(dir, "jupyter"))
	for _, p := range peers {
		started, err := startPeer(ctx, p.script, p.args...)
		if err != nil {
			return nil, stop, nil, err
		}
		stops = append(stops, started.stop)
		ways = append(ways, way{name: p.name, run: started.run, slow: p.slow, goal: p.goal, tail: p.tail})
	}
	ways = append(ways, way{name: byMCPGo, run: func(code string, n int) ([]float64, error) {
		return timed(n, func() error { return srv.execute(ctx, "warm", code) })
	}}, way{name: listFirst, run: func(code string, n int) ([]float64, error) {
		return timed(n, func() error { // 2026-07-28 has no ping
			err := post.ask(ctx, mcp.MethodResourcesTemplatesList, "", map[string]any{})
			return errors.Join(err, execute(ctx, client, code))
		})
	}})
	return ways, stop, missing, nil
}

// bystander is a peer that is yet to be started.
type bystander struct {
	name, script string
	args         []string
	slow         bool
	goal, tail   float64
}

// stockArgv starts ipykernel as it comes.
var stockArgv = []string{"/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"}

// peersHere returns the peers that this machine has, the floor first, and what it takes to have the others.
func peersHere(jupyterDir string) (found []bystander, missing []string) {
	ours, stock := argument(kernelstest.Python.Argv), argument(stockArgv)
	found = []bystander{
		{name: theFloor, script: "e2e/bench/peers/jupyter_client_peer.py", args: []string{ours}, goal: 1.10, tail: 1.5},
		{name: "jupyter_client, the kernel as it comes", script: "e2e/bench/peers/jupyter_client_peer.py", args: []string{stock}, goal: 0.80},
	}
	if exec.Command("/usr/bin/python3", "-c", "import jupyter_server").Run() == nil {
		err := os.Mkdir(jupyterDir, 0o700)
		if err == nil {
			found = append(found, bystander{
				name: "jupyter-server's WebSocket, our kernel", script: "e2e/bench/peers/jupyter_server_peer.py", args: []string{ours, jupyterDir}, goal: 1,
			})
		}
	} else {
		missing = append(missing, "jupyter-server is left out: apt-get install python3-jupyter-server")
	}
	host := os.Getenv("CELLBLOCK_TEST_DOCKER_HOST")
	if host == "" {
		return found, append(missing, "containers are left out: CELLBLOCK_TEST_DOCKER_HOST names no engine")
	}
	const script = "e2e/bench/peers/call_peer.py"
	return append(found,
		bystander{name: "a container per call", script: script, args: []string{host, benchImage, "run"}, slow: true, goal: 1.0 / 300},
		bystander{name: "`docker exec` of `python3 -c`", script: script, args: []string{host, benchImage, "exec"}, slow: true, goal: 1},
	), missing
}

// benchImage is what containers of peers run.
const benchImage = "cellblock-python:latest"

func argument(argv []string) string {
	text, err := json.Marshal(argv)
	if err != nil {
		panic(err) // strings always can be written
	}
	return string(text)
}
