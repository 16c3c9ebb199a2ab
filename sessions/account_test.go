package sessions_test

import (
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

func account(t *testing.T, m *sessions.Manager, id string) sessions.Account {
	t.Helper()
	a, err := m.Account(t.Context(), sessions.Alice, id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An account tells of a session's kernels what ended them, while it lives and after.
func TestAccount(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
	runCell(t, m, "s", "one")
	runCell(t, m, "s", "die")
	runCell(t, m, "s", "two")
	a := account(t, m, "s")
	if a.State != sessions.Idle || a.Executions != 3 || a.Language != "python" || len(a.Generations) != 2 {
		t.Fatalf("of a session that lives: %+v", a)
	}
	if g := a.Generations; g[0].Ended.IsZero() || g[0].Why == "" || !g[1].Ended.IsZero() {
		t.Errorf("generations %+v", g)
	}
	if text, err := m.Log(t.Context(), sessions.Alice, "s"); err != nil || !strings.Contains(text, "last") {
		t.Errorf("its log: %q, %v", text, err)
	}
	if all, err := m.Accounts(t.Context(), sessions.Alice); err != nil || len(all) != 1 || all[0].State != sessions.Idle {
		t.Errorf("all: %+v, %v", all, err)
	}
	shutdown(t, m)

	m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store.Another(), dir))
	a = account(t, m, "s")
	if a.State != sessions.Closed || a.Executions != 3 || !strings.Contains(a.Why, "the server was stopped") || a.Generations[1].Ended.IsZero() {
		t.Errorf("of a session that has ended: %+v", a)
	}
	if all, err := m.Accounts(t.Context(), sessions.Alice); err != nil || len(all) != 1 || all[0].ID != "s" || all[0].State != sessions.Closed {
		t.Errorf("all: %+v, %v", all, err)
	}
	if all, err := m.Accounts(t.Context(), sessions.Bob); err != nil || len(all) != 0 {
		t.Errorf("somebody else's: %+v, %v", all, err)
	}
	for _, o := range []sessions.Owner{sessions.Alice, sessions.Bob} {
		if _, err := m.Log(t.Context(), o, "s"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("the log of a session that does not run: %v", err)
		}
	}
	if _, err := m.Account(t.Context(), sessions.Bob, "s"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("somebody else's session: %v", err)
	}
}

// What a killed server left open has an end.
func TestAccountOfAKilledServer(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
	runCell(t, m, "s", "one")
	store.Kill()
	store.Fail(fault.New(fault.Unavailable, "killed"))

	m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store.Another(), dir))
	a := account(t, m, "s")
	if g := a.Generations; a.State != sessions.Died || len(g) != 1 || g[0].Ended.IsZero() || !strings.Contains(g[0].Why, "is gone") {
		t.Errorf("%+v", a)
	}
}
