//go:build linux

package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/internal/fault"
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
	h, out := launchScript(t, p, "kernel0001", "id -un; pwd; ls /; echo $HOME; touch made")
	if want := "cellblock\n/workspace\nbin\ndev\netc\n"; !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "workspace\n/run/home\n") {
		t.Errorf("inside: %s", out)
	}
	refs, err := p.List(t.Context())
	if err != nil || len(refs) != 1 || refs[0].KernelID != "kernel0001" {
		t.Fatal(refs, err)
	}
	pid := h.(*handle).state.Main.PID
	if session, err := unix.Getsid(pid); err != nil || session != pid {
		t.Errorf("session %d of process %d, %v: what ends the server's session would reach it", session, pid, err)
	}
	spec, _ := script(t, p, "kernel0001", "true")
	if _, err := p.Launch(t.Context(), spec); fault.KindOf(err) != fault.Invalid {
		t.Error("the same id again:", err)
	}
	if err := h.Stop(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if got, want := h.Status(), (kernels.ExitStatus{Asked: true}); got != want {
		t.Errorf("%+v", got)
	}
	if left := leftovers(t, p, dir); left != "" {
		t.Fatal(left)
	}
}

// Kernels may be launched while somebody lists; none of them is taken for a launch that was left half made.
func TestLaunchWhileListing(t *testing.T) {
	dir := t.TempDir()
	p, q := newLocal(t, dir), newLocal(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	var lister, launchers sync.WaitGroup
	lister.Go(func() {
		for ctx.Err() == nil {
			_, _ = q.List(ctx)
		}
	})
	handles := make([]kernels.Handle, 6)
	for i := range handles {
		spec, _ := script(t, p, fmt.Sprintf("listing%03d", i), "true")
		launchers.Go(func() {
			h, err := p.Launch(t.Context(), spec)
			if err != nil {
				t.Error(err)
			}
			handles[i] = h
		})
	}
	launchers.Wait()
	cancel()
	lister.Wait()
	if refs, err := q.List(t.Context()); err != nil || len(refs) != len(handles) {
		t.Errorf("%d of %d listed, %v", len(refs), len(handles), err)
	}
	for i, h := range handles {
		if h == nil {
			continue
		}
		if i%2 == 0 { // one that dies while nobody holds it is swept by the next List
			_ = h.(*handle).all[1].signal(unix.SIGKILL)
			<-h.Exited()
		} else if err := h.Stop(t.Context(), 0); err != nil {
			t.Error(err)
		}
		_ = h.Close()
	}
	if refs, err := q.List(t.Context()); err != nil || len(refs) != 0 {
		t.Error(refs, err)
	}
	if left := leftovers(t, p, dir); left != "" {
		t.Error(left)
	}
}

// Read-only paths appear where they are on the host, also below /tmp, and only to be read.
func TestReadOnlyPaths(t *testing.T) {
	venv := filepath.Join(t.TempDir(), "venv")
	if err := os.MkdirAll(filepath.Join(venv, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(venv, "bin", "python")); err != nil {
		t.Fatal(err)
	}
	p := newLocal(t, t.TempDir(), func(c *Config) { c.ReadOnlyPaths = []string{venv} })
	spec, read := script(t, p, "readonly01", "command -v python; touch "+venv+"/x; echo $?; ls "+filepath.Dir(venv))
	spec.Kernelspec.Argv[0] = filepath.Join(venv, "bin", "python")
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	defer h.Stop(context.Background(), 0)
	if out := read(); !strings.HasPrefix(out, venv+"/bin/python\n") || !strings.HasSuffix(out, "Read-only file system\n1\nvenv\n") {
		t.Error(out)
	}
}

// A systemd of the user's makes the group and becomes bubblewrap, under the same pid. It is played by a script here.
func TestLaunchInScope(t *testing.T) {
	dir := t.TempDir()
	p := newLocal(t, dir)
	if p.user.drop {
		t.Skip("root makes its groups itself")
	}
	run := filepath.Join(dir, "systemd-run")
	text := "#!/bin/sh\nfor a; do shift; case $a in --unit=*) mkdir '" + dir + "'/${a#--unit=}.scope;; --) break;; esac; done\nexec \"$@\"\n"
	if err := os.WriteFile(run, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	p.cgroups = cgroups{prefix: "p", log: p.cfg.Logger, scope: &scope{run: run, slice: dir, env: []string{"XDG_RUNTIME_DIR=/secret"}}}
	h, out := launchScript(t, p, "inscope001", "cat /proc/1/cmdline | tr '\\0' ' '; env; ls -d /sys/fs/cgroup")
	if !strings.HasPrefix(out, "/run/cellblock-shim ") || strings.Contains(out, "/secret") || !strings.HasSuffix(out, "/sys/fs/cgroup\n") {
		t.Error(out)
	}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", h.(*handle).state.Main.PID)); err != nil || exe != p.bwrap.path {
		t.Error(exe, err)
	}
	if err := h.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, p, dir); left != "" {
		t.Error(left)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*.scope")); len(found) != 0 {
		t.Error(found)
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
