//go:build linux

package local

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// newBare returns a provisioner without a sandbox.
func newBare(t *testing.T) (*Provisioner, string) {
	t.Helper()
	dir := passable(t)
	shim := filepath.Join(dir, "stubshim")
	b, err := os.ReadFile(stubShim(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shim, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return newLocal(t, dir, func(c *Config) { c.Sandbox, c.ShimPath = SandboxNone, shim }), dir
}

// Without a sandbox there are still a user that is not root, a clean environment, a session apart, and a warning.
func TestBare(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SERVER", "x")
	p, dir := newBare(t)
	if w := p.Capabilities().Warnings; len(w) == 0 || !strings.Contains(w[0], "NO SANDBOX") {
		t.Error(w)
	}
	spec, _ := script(t, p, "bare000001", "")
	ws := spec.Workspace
	spec.Workspace = ownFolder(t, p, filepath.Join(dir, "ws"))
	if err := os.Rename(filepath.Join(ws, "out"), filepath.Join(spec.Workspace, "out")); err != nil {
		t.Fatal(err)
	}
	spec.Kernelspec.Argv[2] = `exec 3>out; (id -u; id -G; pwd; env; cat /proc/self/stat) >&3 2>&1; setsid sleep 1000 3>&- & setsid setsid sleep 1000 3>&- & echo started >&3; exec 3>&-; wait`
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	out, err := os.ReadFile(filepath.Join(spec.Workspace, "out"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	if lines[0] != strconv.Itoa(p.user.uid) || lines[2] != spec.Workspace || strings.Contains(string(out), "SECRET") {
		t.Errorf("%s", out)
	}
	if p.user.drop && lines[1] != strconv.Itoa(p.user.gid) {
		t.Errorf("groups %s", lines[1])
	}
	shim := h.(*handle).state.Main
	all := descendants(shim.PID)
	if len(all) == 0 {
		t.Fatal("no processes")
	}
	if err := h.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(all, shim) {
		if st, err := readStat(id.PID); err == nil && st.start == id.Start && !st.zombie {
			t.Errorf("process %d lives on", id.PID)
		}
	}
	if got, want := h.Status(), (kernels.ExitStatus{Code: -1, Signal: "SIGKILL", Asked: true}); got != want {
		t.Errorf("%+v", got)
	}
	_ = os.Remove(filepath.Join(spec.Workspace, "out"))
	if left := leftovers(t, p, dir); left != "" {
		t.Error(left)
	}
}

func TestBarePoliteStop(t *testing.T) {
	p, dir := newBare(t)
	spec, _ := script(t, p, "bare000002", "")
	spec.Workspace = ownFolder(t, p, filepath.Join(dir, "ws"))
	spec.Kernelspec.Argv = []string{"/bin/sleep", "1000"}
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Stop(context.Background(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if got, want := h.Status(), (kernels.ExitStatus{Code: 0, Asked: true}); got != want {
		t.Errorf("%+v", got)
	}
}

// Root without a sandbox cannot show a kernel's user what lies behind a closed folder, and says so.
func TestBareUnreachable(t *testing.T) {
	p, _ := newBare(t)
	if !p.user.drop {
		t.Skip("only root runs kernels as another user")
	}
	spec, _ := script(t, p, "bare000003", "")
	_, err := p.Launch(t.Context(), spec)
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "may not pass") {
		t.Fatal(err)
	}
}
