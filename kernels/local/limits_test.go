//go:build linux

package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

const eat = `/usr/bin/python3 -c 'x = bytearray(400 << 20)' 2>&1; echo "eater: $?"`

// A kernel that takes more memory than it may is killed by its cgroup, and the host's own count says so.
func TestMemoryIsBounded(t *testing.T) {
	p := newLocal(t, t.TempDir())
	if p.cgroups.by(memory) == "" {
		t.Skip("no memory cgroup here; the suite tests RLIMIT_DATA with the real shim")
	}
	h, out := launchScript(t, p, "memory0001", eat)
	if !strings.Contains(out, "eater: 137") {
		t.Error(out)
	}
	if n := h.(*handle).state.Group.oomKills(); n != 1 {
		t.Errorf("%d kills for memory", n)
	}
	select {
	case <-h.Exited():
		t.Error("the shim was killed too")
	default:
	}
}

// What a kernel puts into files in memory counts too.
func TestMemoryFilesCount(t *testing.T) {
	p := newLocal(t, t.TempDir())
	if p.cgroups.by(memory) == "" {
		t.Skip("no memory cgroup here")
	}
	spec, read := script(t, p, "memory0002", "head -c 300M /dev/zero >/dev/shm/x; echo tail: $?")
	spec.Limits = kernels.Limits{Memory: 64 << 20, Tmp: 400 << 20}
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	defer h.Stop(context.Background(), 0)
	if out := read(); strings.Contains(out, "tail: 0") || h.(*handle).state.Group.oomKills() == 0 {
		t.Error(out)
	}
	select { // no process's end frees such files, so that the shim ends too
	case <-h.Exited():
		if st := h.Status(); !st.OOM || st.Signal != "SIGKILL" {
			t.Errorf("%+v", st)
		}
	case <-time.After(5 * time.Second):
		t.Error("the sandbox lives on")
	}
}

func TestProcessesAreBounded(t *testing.T) {
	p := newLocal(t, t.TempDir())
	if p.cgroups.by(pids) == "" {
		t.Skip("no pids cgroup here; the suite tests RLIMIT_NPROC with the real shim")
	}
	_, out := launchScript(t, p, "pids000001", `
/usr/bin/python3 -c '
import os, time
n = 0
try:
    while n < 500:
        if os.fork() == 0:
            os.closerange(0, 16)
            time.sleep(100)
            os._exit(0)
        n += 1
except BlockingIOError:
    pass
print("forked", n)'`)
	n := 0
	if i := strings.Index(out, "forked "); i >= 0 {
		for _, c := range strings.TrimSpace(out[i+7:]) {
			n = n*10 + int(c-'0')
		}
	}
	if n < 30 || n >= 64 {
		t.Errorf("%d processes under a limit of 64: %s", n, out)
	}
}

// The sandbox sees its own limits where programs look for them, and cannot change them.
func TestLimitsAreShown(t *testing.T) {
	p := newLocal(t, t.TempDir())
	if len(p.cgroups.parents) == 0 || p.cgroups.parents[0].Version != 1 {
		t.Skip("no cgroup v1 here")
	}
	_, out := launchScript(t, p, "shown00001", "cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us pids/pids.max; wc -l <memory/cgroup.procs; grep -c /cellblock /proc/self/cgroup")
	if want := "268435456\n100000\n64\n"; !strings.HasPrefix(out, want) {
		t.Errorf("got %s", out)
	}
	if !strings.HasSuffix(out, "\n0\n") {
		t.Errorf("the place of the group on the host is shown: %s", out)
	}
}

func TestCapabilities(t *testing.T) {
	p := newLocal(t, t.TempDir())
	c := p.Capabilities()
	t.Logf("%+v", c)
	if c.Memory == "" || c.FileSize == "" || c.Network == "" || c.Filesystem == "" || c.Processes == "" || c.UID == 0 || c.GID == 0 {
		t.Errorf("%+v", c)
	}
	if c.ReportsOOM != strings.HasPrefix(c.Memory, "cgroup") || c.Images {
		t.Errorf("%+v", c)
	}
}

// A limit that the host does not hold stops the launch, unless that is allowed; then the kernel runs.
func TestIgnoredLimitIsRefused(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		dir := t.TempDir()
		p := newLocal(t, dir, func(c *Config) { c.AllowUnenforced = allowed })
		p.cgroups = cgroups{prefix: "p", log: p.cfg.Logger}
		l := launch{p: p, state: state{}}
		err := l.tolerate(errors.Join(errIgnored, errors.New("memory.max is max")))
		if (err == nil) != allowed {
			t.Errorf("allowed %v: %v", allowed, err)
		}
	}
}

// A shim that ends at once makes the launch fail with what it said, and nothing stays.
func TestLaunchFails(t *testing.T) {
	for _, mode := range []Sandbox{SandboxBubblewrap, SandboxNone} {
		dir := passable(t)
		shim := filepath.Join(dir, "shim")
		if err := os.WriteFile(shim, []byte("#!/bin/sh\necho the shim is unwell >&2\nexit 7\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := newLocal(t, dir, func(c *Config) { c.ShimPath, c.Sandbox = shim, mode })
		spec, _ := script(t, p, "fails00001", "true")
		spec.Workspace = ownFolder(t, p, filepath.Join(dir, "ws"))
		h, err := p.Launch(t.Context(), spec)
		if err == nil || fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the shim is unwell") ||
			!strings.Contains(fault.Hint(err), "of the same version") {
			t.Errorf("%s: %v, %v (%s)", mode, h, err, fault.Hint(err))
		}
		if left := leftovers(t, p, dir); left != "" {
			t.Errorf("%s: %s", mode, left)
		}
	}
}

// A launch whose caller gives up leaves nothing, whatever it was waiting for.
func TestLaunchCancelled(t *testing.T) {
	dir := t.TempDir()
	mute := filepath.Join(dir, "shim")
	if err := os.WriteFile(mute, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := newLocal(t, dir, func(c *Config) { c.ShimPath = mute })
	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
		spec, _ := script(t, p, "cancel0001", "true")
		ctx, cancel := context.WithTimeout(t.Context(), after)
		h, err := p.Launch(ctx, spec)
		cancel()
		if fault.KindOf(err) != fault.Timeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v, %v", after, h, err)
		}
		if left := leftovers(t, p, dir); left != "" {
			t.Errorf("after %v: %s", after, left)
		}
	}
}

// passable returns a folder that every user may pass, unlike a test's own.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ownFolder makes a folder of the kernels' user.
func ownFolder(t *testing.T, p *Provisioner, path string) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, p.user.uid, p.user.gid); err != nil {
		t.Fatal(err)
	}
	return path
}
