//go:build linux

package sessions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"cellblock/kernels"
	"cellblock/kernels/docker"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
)

// engines are the container engines that sessions are tested on, by the variable that names them.
var engines = map[string]string{"docker": "CELLBLOCK_TEST_DOCKER_HOST", "podman": "CELLBLOCK_TEST_PODMAN_HOST"}

// newOnEngine returns a Manager whose kernels run in an engine's containers, and a client of that engine.
func newOnEngine(t *testing.T, variable string, change ...func(*sessions.Config)) (*sessions.Manager, *client.Client) {
	t.Helper()
	host := os.Getenv(variable)
	kernelstest.Need(t, host != "", "an engine in "+variable)
	dir := kernelstest.ShortDir(t)
	const image = "cellblock-python:latest"
	p, err := docker.New(docker.Config{
		Host: host, Installation: fmt.Sprintf("test-%d", rand.Uint64()), RunDir: filepath.Join(dir, "run"), Images: []string{image},
		Shim: kernelstest.BuildShim(t), AllowUnenforced: os.Getenv("CELLBLOCK_TEST_ALLOW_UNENFORCED") == "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	err = p.Health(t.Context())
	kernelstest.Need(t, err == nil, fmt.Sprintf("%s: %v", variable, err))
	cfg := sessions.Config{
		Provisioner: p, DataDir: filepath.Join(dir, "data"),
		Runtimes: map[string]sessions.Runtime{"python": {Kernelspec: kernelstest.Python, Image: image}},
		Profiles: map[string]sessions.Profile{sessions.DefaultProfile: {Limits: kernels.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 128, Tmp: 64 << 20}}},
		Logger:   slog.New(slog.DiscardHandler),
	}
	api, err := client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return realManager(t, cfg, change...), api
}

// death is a way to end a kernel from outside, or by a cell.
type death struct {
	name string
	code string // the cell that ends it; empty: kill does
	kill func(t *testing.T, m *sessions.Manager, mark string)
	// cause is what everybody is told.
	cause string
}

// byMark kills the kernel process, which has a mark in its environment, with SIGKILL.
func byMark(t *testing.T, _ *sessions.Manager, mark string) {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if bytes.Contains(environ, []byte("CB_MARK="+mark+"\x00")) && bytes.Contains(command, []byte("ipykernel")) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the kernel's process is not to be seen")
}

// onContainer does something to the one container that runs.
func onContainer(api *client.Client, do func(ctx context.Context, id string) error) func(*testing.T, *sessions.Manager, string) {
	return func(t *testing.T, m *sessions.Manager, _ string) {
		t.Helper()
		refs, err := m.Config().Provisioner.List(t.Context())
		if err != nil || len(refs) != 1 {
			t.Fatalf("%v kernels run, %v", refs, err)
		}
		var data struct{ Container string }
		if err := json.Unmarshal(refs[0].Data, &data); err != nil {
			t.Fatal(err)
		}
		if err := do(t.Context(), data.Container); err != nil {
			t.Fatal(err)
		}
	}
}

// every death is told at once to whoever waits, and to the next cell, with what is lost and what is kept.
func testDeaths(t *testing.T, m *sessions.Manager, mark string, deaths []death) {
	for i, d := range deaths {
		for _, busy := range []bool{true, false} {
			if d.code != "" && !busy {
				continue
			}
			t.Run(fmt.Sprintf("%s, busy %v", d.name, busy), func(t *testing.T) {
				id := fmt.Sprintf("s%d%v", i, busy)
				say := func(code string) sessions.Request { return sessions.Request{SessionID: id, Code: code} }
				run(t, m, say("x = 1\nopen('kept.txt', 'w').write('here')"))
				if busy {
					code := d.code
					if code == "" {
						code = "import time\nprint('go', flush=True)\ntime.sleep(100)"
					}
					e, err := m.Execute(t.Context(), owner, say(code))
					if err != nil {
						t.Fatal(err)
					}
					if d.kill != nil {
						for range e.Outputs(t.Context()) {
							break // it has said that it runs
						}
						d.kill(t, m, mark)
					}
					began := time.Now()
					r, err := e.Wait(t.Context())
					if err != nil || r.Status != kernels.StatusDied || r.Death == nil || !strings.Contains(r.Death.Cause, d.cause) {
						t.Errorf("the cell ended with %v %+v, %v; want %q", r.Status, r.Death, err, d.cause)
					}
					if took := time.Since(began); d.kill != nil && took > 5*time.Second {
						t.Errorf("it was told after %v", took)
					}
				} else {
					d.kill(t, m, mark)
					untilState(t, m, id, sessions.Died)
				}
				got, r, e := run(t, m, say("print(open('kept.txt').read(), 'x' in globals())"))
				if got != "here False\n" || e.Generation() != 2 {
					t.Errorf("the next cell: %q %+v in generation %d", got, r, e.Generation())
				}
				for _, word := range []string{d.cause, "UTC", "generation 1", "variables", "lost", "files in the workspace are kept", "history", "restore_session"} {
					if !strings.Contains(e.Preamble(), word) {
						t.Errorf("the next cell is not told %q: %s", word, e.Preamble())
					}
				}
				if err := m.Close(t.Context(), owner, id, sessions.CloseOptions{DeleteFiles: true}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// untilState waits until a session is in a state.
func untilState(t *testing.T, m *sessions.Manager, id string, want sessions.State) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(10 * time.Second); ; {
		if info, err := m.Get(t.Context(), owner, id); err == nil && info.State == want {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("session %s is not %s after 10 s", id, want)
		}
	}
}

// deathsOfAll are those that are the same everywhere.
func deathsOfAll() []death {
	return []death{
		{name: "exit", code: "import os; os._exit(3)", cause: "the kernel exited with status 3"},
		{name: "segmentation fault", code: "import ctypes; ctypes.string_at(0)", cause: "the kernel was killed by SIGSEGV"},
		{name: "kill -9", kill: byMark, cause: "the kernel was killed by SIGKILL"},
	}
}

// outOfMemory is for runtimes that report it.
var outOfMemory = death{name: "out of memory", code: "x = bytearray(1 << 30)", cause: "the kernel ran out of memory (limit 256 MiB) and was killed"}

func marked(mark string) func(*sessions.Config) {
	return func(c *sessions.Config) {
		python := c.Runtimes["python"]
		env := map[string]string{"CB_MARK": mark}
		maps.Copy(env, python.Kernelspec.Env)
		python.Kernelspec.Env = env
		c.Runtimes["python"] = python
		limits := c.Profiles[sessions.DefaultProfile].Limits
		limits.Memory = 256 << 20
		c.Profiles[sessions.DefaultProfile] = sessions.Profile{Limits: limits}
	}
}

func TestRealDeathsInTheSandbox(t *testing.T) {
	mark := strconv.FormatUint(rand.Uint64(), 36)
	m := newReal(t, marked(mark))
	deaths := deathsOfAll()
	if m.Config().Provisioner.Capabilities().ReportsOOM {
		deaths = append(deaths, outOfMemory)
	}
	testDeaths(t, m, mark, deaths)
}

func TestRealDeathsInContainers(t *testing.T) {
	for name, variable := range engines {
		t.Run(name, func(t *testing.T) {
			mark := strconv.FormatUint(rand.Uint64(), 36)
			m, api := newOnEngine(t, variable, marked(mark))
			var deaths []death
			if !kernelstest.HasTwin(variable) { // what befalls the kernel alone is told by its shim, on every engine
				deaths = deathsOfAll()
			}
			deaths = append(deaths,
				death{name: "container killed", cause: "the kernel's container or sandbox was killed by SIGKILL", kill: onContainer(api, func(ctx context.Context, id string) error {
					return api.ContainerKill(ctx, id, "KILL")
				})},
				death{name: "container removed", cause: "the kernel's container or sandbox ", kill: onContainer(api, func(ctx context.Context, id string) error {
					return api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true})
				})},
			)
			if m.Config().Provisioner.Capabilities().ReportsOOM {
				deaths = append(deaths, outOfMemory)
				defer testKilledChild(t, m) // last: the others look for a single kernel
			}
			testDeaths(t, m, mark, deaths)
		})
	}
}

// A child that is killed for memory leaves its kernel alive, and its cell, alone, is told of.
func testKilledChild(t *testing.T, m *sessions.Manager) {
	t.Helper()
	out, result, _ := run(t, m, cell("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'x = bytearray(1 << 30)']).returncode)"))
	if out != "-9\n" || result.Status != kernels.StatusOK || result.OOMKills != 1 {
		t.Errorf("a child was killed: %q, %+v", out, result)
	}
	if _, result, _ = run(t, m, cell("print()")); result.OOMKills != 0 {
		t.Errorf("the next cell: %+v", result)
	}
}

// What was lost with a real kernel is there again, variables and what libraries keep.
func TestRealRestore(t *testing.T) {
	m := newReal(t)
	for _, code := range []string{"import math", "def area(r):\n    return math.pi * r * r", "1/0", "a = area(2)\nprint('big output' * 1000)",
		"name = input('who? ')", "import os; os._exit(3)"} {
		run(t, m, cell(code))
	}
	report, err := m.RestoreSession(t.Context(), owner, "real", sessions.RestoreOptions{})
	if err != nil || steps(report) != "1>7 ok, 2>8 ok, 4>9 ok" {
		t.Errorf("%s, %+v, %v", steps(report), report, err)
	}
	if got, _, e := run(t, m, cell("print(round(a, 2), area(1) > 3)")); got != "12.57 True\n" || e.Preamble() != "" {
		t.Errorf("afterwards: %q, %q", got, e.Preamble())
	}
}

// A cell that tells its kernel to end is told so itself, and the next one runs on a new kernel.
func TestRealExit(t *testing.T) {
	m := newReal(t)
	for _, code := range []string{"print('bye'); exit()", "quit()"} {
		_, result, _ := run(t, m, cell(code))
		if result.Status != kernels.StatusDied || result.Death == nil || !strings.Contains(result.Death.Cause, "exit()") {
			t.Errorf("%s: %+v", code, result)
		}
		got, result, e := run(t, m, cell("print('fresh')"))
		if got != "fresh\n" || result.Status != kernels.StatusOK || !strings.Contains(e.Preamble(), "exit()") {
			t.Errorf("after %s: %q %+v %q", code, got, result, e.Preamble())
		}
	}
}
