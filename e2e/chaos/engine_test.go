//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

// engineVariable names the folder of an engine of scripts/engine.sh that this test may stop and start.
const engineVariable = "CELLBLOCK_CHAOS_ENGINE"

// engine is a Docker engine that nobody else uses meanwhile.
type engine struct {
	t                 *testing.T
	dir, host, script string
	live              bool     // containers go on without it
	others            []string // containers that were there before
}

const image = "cellblock-python:latest"

// needEngine starts the engine if it does not run, with the kernels' image in it. It is left as it was found.
func needEngine(t *testing.T) *engine {
	dir := os.Getenv(engineVariable)
	kernelstest.Need(t, dir != "", "the folder of a Docker engine that may be stopped ("+engineVariable+", see scripts/engine.sh)")
	e := &engine{t: t, dir: dir, script: filepath.Join(rig.Root(t), "scripts", "engine.sh")}
	_, err := os.Stat(filepath.Join(dir, "dockerd.pid"))
	ran := err == nil
	t.Cleanup(func() {
		e.stop()
		_ = os.Remove(e.config())
		if ran {
			e.start()
		}
	})
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e.stop()
	e.configure(false)
	e.start()
	if exec.Command("docker", "--host", e.host, "image", "inspect", image).Run() != nil {
		e.load()
	}
	if e.others, err = e.containers(); err != nil {
		t.Fatal(err)
	}
	return e
}

// load copies the image from the engine of the other tests.
func (e *engine) load() {
	from := os.Getenv("CELLBLOCK_TEST_DOCKER_HOST")
	kernelstest.Need(e.t, from != "", "an engine to take the kernels' image from (CELLBLOCK_TEST_DOCKER_HOST)")
	line := fmt.Sprintf("set -o pipefail; docker --host %s save %s | docker --host %s load", from, image, e.host)
	if out, err := exec.Command("bash", "-c", line).CombinedOutput(); err != nil {
		e.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

func (e *engine) stop() {
	e.t.Helper()
	if out, err := exec.Command(e.script, "stop", e.dir).CombinedOutput(); err != nil {
		e.t.Fatalf("engine: %v\n%s", err, out)
	}
}

func (e *engine) start() {
	e.t.Helper()
	cmd := exec.Command(e.script, "docker", e.dir)
	out, err := cmd.Output()
	if err != nil {
		e.t.Fatalf("engine: %v\n%s", err, out)
	}
	_, e.host, _ = strings.Cut(strings.TrimSpace(string(out)), "DOCKER_HOST=")
}

func (e *engine) config() string { return filepath.Join(e.dir, "daemon.json") }

// configure writes whether containers are to go on without the engine.
func (e *engine) configure(live bool) {
	e.t.Helper()
	text, err := json.Marshal(map[string]bool{"live-restore": live})
	if err == nil {
		err = os.WriteFile(e.config(), text, 0o644)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.live = live
}

// reload makes the running engine read its configuration again, as an operator would.
func (e *engine) reload(ctx context.Context) {
	e.t.Helper()
	var pid int
	text, err := os.ReadFile(filepath.Join(e.dir, "dockerd.pid"))
	if err == nil {
		_, err = fmt.Sscan(string(text), &pid)
	}
	if err == nil {
		err = unix.Kill(pid, unix.SIGHUP)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	want := fmt.Sprint(e.live)
	for {
		out, err := e.docker("info", "--format", "{{.LiveRestoreEnabled}}")
		if strings.TrimSpace(out) == want {
			return
		}
		select {
		case <-ctx.Done():
			e.t.Fatalf("live-restore does not become %s: %s %v", want, out, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (e *engine) docker(args ...string) (string, error) {
	out, err := exec.Command("docker", append([]string{"--host", e.host}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", args[0], err, out)
	}
	return string(out), err
}

// containers are those that were not there before.
func (e *engine) containers() ([]string, error) {
	out, err := e.docker("ps", "--all", "--quiet", "--no-trunc")
	return slices.DeleteFunc(strings.Fields(out), func(id string) bool { return slices.Contains(e.others, id) }), err
}

// killContainer kills the containers of the sessions that are to lose theirs.
func killContainer(w *world, deeds []deed) {
	for i, d := range deeds {
		if d.fate.dies == "" {
			continue
		}
		name, err := w.containerOf(w.sessions[i])
		if err == nil {
			_, err = w.engine.docker("kill", name)
		}
		if err != nil {
			w.t.Error(err)
		}
	}
}

// containerOf finds a session's container by the processes in it.
func (w *world) containerOf(s *session) (string, error) {
	shims := map[string]bool{}
	for _, p := range w.of(s) {
		shims[fmt.Sprint(p.pid)] = true
	}
	containers, err := w.engine.containers()
	if err != nil {
		return "", err
	}
	for _, name := range containers {
		pid, err := w.engine.docker("inspect", "--format", "{{.State.Pid}}", name)
		if err == nil && shims[strings.TrimSpace(pid)] {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s has no container", s)
}

// restartEngine stops the engine, with or without its containers, and starts it again.
func (w *world) restartEngine(live bool) {
	if live != w.engine.live {
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		defer cancel()
		w.engine.configure(live)
		w.engine.reload(ctx)
	}
	w.engine.stop()
	w.pause()
	w.engine.start()
}
