package sessions_test

import (
	"errors"
	"strings"
	"testing"

	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// A kernel that never was is none that was lost: no number counts it, and no cell is told of it.
func TestLaunchThatFailsIsNoGeneration(t *testing.T) {
	for name, store := range map[string]func(*sessions.Config){
		"in memory": func(*sessions.Config) {}, "in a store": func(c *sessions.Config) { c.Store = storetest.NewMemory() },
	} {
		t.Run(name, func(t *testing.T) {
			p := &sessions.FakeProvisioner{}
			m := sessions.NewTestManager(t, p, store)
			fails := func(id string) {
				t.Helper()
				p.NotLaunched(errors.New("there is no engine"))
				if _, err := sessions.StartCell(t, m, sessions.Alice, sessions.Python(id, "x")).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no engine") {
					t.Fatalf("got %v", err)
				}
				p.NotLaunched(nil)
			}
			fails("new")
			fails("new")
			if e, _ := runCell(t, m, "new", "x"); e.Generation() != 1 || e.Preamble() != "" {
				t.Errorf("generation %d, preamble %q", e.Generation(), e.Preamble())
			}
			p.KillLast()
			fails("new")
			e, _ := runCell(t, m, "new", "x")
			if told := e.Preamble(); e.Generation() != 2 || !strings.Contains(told, "(generation 1)") || !strings.Contains(told, "killed by SIGKILL") {
				t.Errorf("generation %d, preamble %q", e.Generation(), told)
			}
		})
	}
}
