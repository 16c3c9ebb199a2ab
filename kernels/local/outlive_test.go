//go:build linux

package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/kernels"
)

// TestServer is not a test: it is the server that other tests start and that kills itself at the stage they name.
func TestServer(t *testing.T) {
	dir, stage := os.Getenv("LOCAL_TEST_DIR"), os.Getenv("LOCAL_TEST_STAGE")
	if stage == "" {
		t.Skip("run by other tests")
	}
	p := newLocal(t, dir)
	spec, _ := script(t, p, "outlive001", "true")
	spec.Workspace = filepath.Join(dir, "ws")
	l := &launch{p: p, spec: spec, state: state{Version: stateVersion}}
	l.stage.turns = &p.mounts
	var err error
	try := func(name string, f func() error) {
		if err = f(); err != nil {
			t.Fatal(name, err)
		}
		if name == stage {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	if stage == "launched" {
		h, err := p.Launch(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		_ = json.NewEncoder(os.Stdout).Encode(h.Ref())
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	try("folder", func() error { l.entry, err = newEntry(p.cfg.StateDir, spec.ID); return err })
	try("prepared", l.prepare)
	try("started", func() error { return l.start(t.Context()) })
	try("placed", l.place)
	try("opened", func() error {
		_, err := l.gate.Write(l.opening)
		if err = errors.Join(err, l.gate.Close()); err != nil {
			return err
		}
		_, err = bufio.NewReader(l.info).ReadString('}')
		return err
	})
	t.Fatal("no stage", stage)
}

// killedServer runs TestServer and returns what it printed before it died.
func killedServer(t *testing.T, dir, stage string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServer$", "-test.v")
	cmd.Env = append(os.Environ(), "LOCAL_TEST_DIR="+dir, "LOCAL_TEST_STAGE="+stage, "LOCAL_TEST_STUB="+stubShim(t))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the server was to be killed at %q: %v\n%s", stage, err, out)
	}
	return string(out)
}

// workspace makes the workspace of a killed server's kernel.
func workspace(t *testing.T, dir string, p *Provisioner) {
	t.Helper()
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(ws, p.user.uid, p.user.gid); err != nil {
		t.Fatal(err)
	}
	// The script's pipe is opened for both ends, so that it has a reader.
	if err := syscall.Mkfifo(filepath.Join(ws, "out"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(ws, "out"), p.user.uid, p.user.gid); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(ws, "out"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
}

func TestKernelOutlivesServer(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Second} {
		dir := t.TempDir()
		p := newLocal(t, dir)
		workspace(t, dir, p)
		out := killedServer(t, dir, "launched")
		var ref kernels.Ref
		if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &ref); err != nil {
			t.Fatal(err, out)
		}
		refs, err := p.List(t.Context())
		if err != nil || len(refs) != 1 || string(refs[0].Data) != string(ref.Data) {
			t.Fatal(refs, err, ref)
		}
		h, err := p.Attach(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := awaitShim(t.Context(), h.(*handle)); err != nil {
			t.Fatal(err)
		}
		if err := h.Stop(t.Context(), grace); err != nil {
			t.Fatal(err)
		}
		checkExited(t, h, grace)
		if err := errors.Join(h.Stop(t.Context(), grace), h.Close()); err != nil {
			t.Fatal("again:", err)
		}
		if _, err := p.Attach(t.Context(), ref); !errors.Is(err, kernels.ErrGone) {
			t.Fatal(err)
		}
		if left := leftovers(t, p, dir); left != "" {
			t.Fatal(left)
		}
	}
}

// checkExited checks that a kernel stopped with or without grace says so; bubblewrap, whom nobody waits for here, has
// told how it ended.
func checkExited(t *testing.T, h kernels.Handle, grace time.Duration) {
	t.Helper()
	select {
	case <-h.Exited():
	default:
		t.Fatal("stopped and not exited")
	}
	want := kernels.ExitStatus{Code: 0, Asked: true}
	if grace == 0 {
		want = kernels.ExitStatus{Code: -1, Signal: "SIGKILL", Asked: true}
	}
	if got := h.Status(); got != want {
		t.Fatalf("ended as %+v, want %+v", got, want)
	}
}

// Whenever the server dies within a launch, nothing of a kernel runs that List does not name, and List takes away the
// rest.
func TestServerDiesWhileLaunching(t *testing.T) {
	for _, stage := range []string{"folder", "prepared", "started", "placed"} {
		t.Run(stage, func(t *testing.T) {
			dir := t.TempDir()
			p := newLocal(t, dir)
			workspace(t, dir, p)
			killedServer(t, dir, stage)
			awaitEmpty(t, p, "outlive001")
			refs, err := p.List(t.Context())
			if err != nil || len(refs) != 0 {
				t.Fatal(refs, err)
			}
			if left := leftovers(t, p, dir); left != "" {
				t.Fatal(left)
			}
		})
	}
	t.Run("opened", func(t *testing.T) {
		dir := t.TempDir()
		p := newLocal(t, dir)
		workspace(t, dir, p)
		killedServer(t, dir, "opened")
		refs, err := p.List(t.Context())
		if err != nil || len(refs) != 1 {
			t.Fatal(refs, err)
		}
		h, err := p.Attach(t.Context(), refs[0])
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if n := len(h.(*handle).all); n != 2 {
			t.Errorf("%d processes, want bubblewrap and the sandbox's first", n)
		}
		if err := h.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if left := leftovers(t, p, dir); left != "" {
			t.Fatal(left)
		}
	})
}

// awaitEmpty waits for the process that lost its gate to end, which takes it a moment.
func awaitEmpty(t *testing.T, p *Provisioner, id string) {
	t.Helper()
	e := &entry{id: id, dir: filepath.Join(p.cfg.StateDir, id)}
	st, err := e.load()
	if err != nil {
		return // not that far
	}
	proc, err := openProcess(st.Main)
	if err != nil {
		return
	}
	defer proc.close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := proc.waitFor(ctx); err != nil {
		t.Fatal("the held process lives on:", err)
	}
}

// A death that nobody asked for is noticed at once and says what it was.
func TestDeath(t *testing.T) {
	p := newLocal(t, t.TempDir())
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGTERM} {
		h, _ := launchScript(t, p, "death00001", "true")
		first := h.(*handle).all[1]
		if err := first.signal(sig); err != nil {
			t.Fatal(err)
		}
		select {
		case <-h.Exited():
		case <-time.After(time.Second):
			t.Fatal("not noticed")
		}
		want := kernels.ExitStatus{Code: -1, Signal: "SIGKILL"}
		if sig == unix.SIGTERM {
			want = kernels.ExitStatus{}
		}
		if got := h.Status(); got != want {
			t.Errorf("%v: %+v, want %+v", sig, got, want)
		}
		if conn, err := h.Dial(t.Context()); err == nil {
			_ = conn.Close()
			t.Error("dialled a dead kernel")
		}
		if refs, err := p.List(t.Context()); err != nil || len(refs) != 0 {
			t.Error(refs, err)
		}
		if err := errors.Join(h.Stop(t.Context(), time.Second), h.Close()); err != nil {
			t.Error(err)
		}
	}
}
