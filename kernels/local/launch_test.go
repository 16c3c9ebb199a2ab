//go:build linux

package local

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

// newLocal returns a provisioner whose installation lies in dir.
func newLocal(t *testing.T, dir string, change ...func(*Config)) *Provisioner {
	t.Helper()
	cfg := Config{StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), ShimPath: stubShim(t)}
	for _, f := range change {
		f(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.Health(t.Context()); err != nil {
		kernelstest.Need(t, false, "a working sandbox: "+err.Error())
	}
	return p
}

// script returns a spec whose kernel is a shell script. What it writes to the pipe that it finds in $OUT is returned by
// the second result.
func script(t *testing.T, p *Provisioner, id, text string) (kernels.Spec, func() string) {
	t.Helper()
	ws := filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(ws, "out")
	if err := syscall.Mkfifo(out, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{ws, out} {
		if err := os.Chown(path, p.user.uid, p.user.gid); err != nil {
			t.Fatal(err)
		}
	}
	spec := kernels.Spec{
		ID: id, Workspace: ws, Limits: kernels.Limits{Memory: 256 << 20, CPUs: 1, PIDs: 64, Tmp: 8 << 20},
		Kernelspec: kernels.Kernelspec{Name: "sh", Language: "sh", Argv: []string{"/bin/sh", "-c", "exec 3>out; ( " + text + "\n) >&3 2>&1; exec 3>&-; sleep 1000"}},
	}
	return spec, func() string {
		f, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func launchScript(t *testing.T, p *Provisioner, id, text string) (kernels.Handle, string) {
	t.Helper()
	spec, read := script(t, p, id, text)
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.Stop(context.Background(), 0)
		_ = h.Close()
	})
	return h, read()
}

func TestLaunchStop(t *testing.T) {
	dir := t.TempDir()
	p := newLocal(t, dir)
	h, out := launchScript(t, p, "kernel0001", "id; env; mount; ls -la / /run /workspace /dev; cat /proc/self/status; ls -l /proc/*/exe")
	t.Log(out)
	refs, err := p.List(t.Context())
	if err != nil || len(refs) != 1 {
		t.Fatal(refs, err)
	}
	start := time.Now()
	if err := h.Stop(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	t.Log("stopped in", time.Since(start), h.Status())
	if left := leftovers(t, p, dir); left != "" {
		t.Fatal(left)
	}
}

// leftovers names what a stopped kernel left on the host.
func leftovers(t *testing.T, p *Provisioner, dir string) string {
	t.Helper()
	var left []string
	for _, pattern := range []string{"s/*", "r/*", "state/*", "run/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		left = append(left, found...)
	}
	for _, parent := range p.cgroups.parents {
		found, _ := filepath.Glob(filepath.Join(parent.Path, p.cgroups.prefix+"-*"))
		left = append(left, found...)
	}
	return strings.Join(left, "\n")
}
