//go:build linux && (amd64 || arm64)

package sessions_test

import (
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/quota/quotatest"
)

// A cell is refused what is more than the quota at once, in the same words on each kernel that the session has, and the
// session's files move to a pooled kernel's folder as they do without one.
func TestRealCellMeetsItsQuota(t *testing.T) {
	data := quotatest.Mount(t, "ext4")
	m := newPool(t, 1, func(c *sessions.Config) { c.DataDir, c.WorkspaceBytes = data, 16<<20 })
	if got := m.WorkspaceBound(); got != sessions.BoundByQuota {
		t.Fatalf("bound by %q", got)
	}
	const fill = "with open('big', 'wb') as f:\n    for _ in range(64):\n        f.write(b'x' * (1 << 20))"
	over := func(name string) {
		t.Helper()
		_, r, e := run(t, m, cell(fill))
		if r.Status != kernels.StatusError || r.Overrun != 0 || r.Error.Value != "[Errno 122] Disk quota exceeded" {
			t.Errorf("%s: %+v %+v", name, r, r.Error)
		}
		if got, _, _ := run(t, m, cell("import os, shutil\nprint(os.stat('big').st_size <= 16 << 20, shutil.disk_usage('.').total)\nos.rename('big', 'moved')")); got != "True 16777216\n" {
			t.Errorf("%s: %q, %q", name, got, e.Preamble())
		}
	}
	over("the first kernel")
	awaitPool(t, m, 1)
	before := where(t, data, "moved")
	if _, err := m.Restart(t.Context(), owner, "real"); err != nil {
		t.Fatal(err)
	}
	if where(t, data, "moved") == before {
		t.Error("the files were not moved to the pooled kernel's folder")
	}
	run(t, m, cell("import os\nos.remove('moved')"))
	over("the next kernel")
	if err := m.Close(t.Context(), owner, "real", sessions.CloseOptions{DeleteFiles: true}); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := run(t, m, cell("import os; print(os.listdir())")); !strings.Contains(got, "[]") {
		t.Errorf("what was deleted is there: %s", got)
	}
}

// where returns the one workspace in which a file is.
func where(t *testing.T, data, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(data, "workspaces", "*", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// The server writes as root, for whom the quota may not hold, so it looks itself.
func TestRealFileToolsMeetTheQuota(t *testing.T) {
	m := newReal(t, func(c *sessions.Config) { c.DataDir, c.WorkspaceBytes = quotatest.Mount(t, "ext4"), 2<<20 })
	if _, _, err := m.WriteFile(t.Context(), owner, "real", "small", make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	_, _, err := m.WriteFile(t.Context(), owner, "real", "big", make([]byte, 2<<20))
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(fault.Text(err), "may hold 2 MiB") {
		t.Errorf("%v", err)
	}
}
