package sessions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// Nothing stays of an owner who is forgotten: no session that runs, none that has ended, no files that came before a cell. Nothing of
// another's goes.
func TestForget(t *testing.T) { synctest.Test(t, testForget) }

func testForget(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
	defer shutdown(t, m)
	for _, id := range []string{"runs", "closed"} {
		runCell(t, m, id, "one")
	}
	if err := m.Close(t.Context(), sessions.Alice, "closed", sessions.CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []sessions.Owner{sessions.Alice, sessions.Bob} {
		for _, id := range []string{"runs", "closed", "files"} {
			if _, _, err := m.WriteFile(t.Context(), o, id, "a.csv", []byte("1")); err != nil {
				t.Fatal(err)
			}
		}
	}
	cell := sessions.StartCell(t, m, sessions.Alice, sessions.Python("runs", "stubborn"))
	synctest.Wait()

	if h, err := m.Holding(t.Context(), sessions.Alice); h != (sessions.Holding{Sessions: 3, Running: 1, Cells: 3}) || err != nil {
		t.Errorf("before: %+v, %v", h, err)
	}
	deleted, err := m.Forget(t.Context(), sessions.Alice)
	if deleted != 3 || err != nil {
		t.Errorf("deleted %d, %v", deleted, err)
	}
	if r := sessions.WaitFor(t, cell); r.Death == nil || !strings.Contains(r.Death.Cause, "an operator of the server") {
		t.Errorf("its cell ends with %+v", r)
	}
	if left, err := m.Known(t.Context(), sessions.Alice); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	labels, _ := filepath.Glob(filepath.Join(dir, "workspaces", "*.json"))
	for _, path := range labels {
		if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), sessions.Alice.Subject) {
			t.Errorf("left: %s, %v", text, err)
		}
	}
	if len(labels) != 3 {
		t.Errorf("%d workspaces are left, not the other's 3", len(labels))
	}
	if deleted, err := m.Forget(t.Context(), sessions.Alice); deleted != 0 || err != nil {
		t.Errorf("once more: %d, %v", deleted, err)
	}
	if h, err := m.Holding(t.Context(), sessions.Alice); h != (sessions.Holding{}) || err != nil {
		t.Errorf("after it: %+v, %v", h, err)
	}
}

// A server that is stopping leaves kernels, files and history where they are, and says so.
func TestForgetWhileStopping(t *testing.T) {
	store := storetest.NewMemory()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, t.TempDir()))
	for _, id := range []string{"runs", "closed"} {
		runCell(t, m, id, "one")
	}
	if err := m.Close(t.Context(), sessions.Alice, "closed", sessions.CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	shutdown(t, m)
	if deleted, err := m.Forget(t.Context(), sessions.Alice); deleted != 0 || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("deleted %d, %v", deleted, err)
	}
}
