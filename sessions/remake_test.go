package sessions_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// A session that is given another image has its files and its numbers, is told what it has lost, and keeps the image.
func TestRemake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := &sessions.FakeProvisioner{}, storetest.NewMemory()
		m := sessions.NewTestManager(t, p, choices, func(c *sessions.Config) { c.Store = store })
		defer m.Shutdown(context.Background())
		sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x")))
		if err := os.WriteFile(filepath.Join(p.Specs()[0].Workspace, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		info, _, err := m.Remake(t.Context(), sessions.Alice, "s", "mine", "")
		if err != nil || info.State != sessions.Idle || info.Generation != 2 {
			t.Fatalf("%+v, %s", info, fault.Text(err))
		}
		again, _, err := m.Remake(t.Context(), sessions.Alice, "s", "mine", "")
		if err != nil || again.Generation != 2 {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x"))
		sessions.WaitFor(t, e)
		if told := e.Preamble(); e.Number() != 2 || told != "" { // whoever called Remake knows
			t.Errorf("cell %d is told %q", e.Number(), told)
		}
		specs := p.Specs()
		if len(specs) != 2 || specs[1].Image != "derived-mine" || specs[1].Workspace != specs[0].Workspace {
			t.Errorf("%+v", specs)
		}
		if used, err := m.ImagesInUse(t.Context()); err != nil || len(used) != 1 || !used["derived-mine"] {
			t.Errorf("in use: %v, %v", used, err)
		}
		if _, _, err := m.Remake(t.Context(), sessions.Alice, "s", "theirs", ""); fault.KindOf(err) != fault.NotFound {
			t.Errorf("an image that is not hers: %v", err)
		}
		if _, _, err := m.Remake(t.Context(), sessions.Alice, "absent", "mine", ""); fault.KindOf(err) != fault.NotFound {
			t.Errorf("no session: %v", err)
		}
		if stored, err := m.KnownSession(t.Context(), sessions.Alice, "s"); err != nil || stored.Image != "derived-mine" {
			t.Errorf("the store has %+v, %v", stored, err)
		}
		later := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, choices, func(c *sessions.Config) { c.Store = store.Another() })
		defer later.Shutdown(context.Background())
		kept, err := later.ImagesKept(t.Context())
		if err != nil || len(kept) != 1 || kept["derived-mine"].IsZero() {
			t.Errorf("another process knows of %v, %v", kept, err)
		}
	})
}

// Whoever has a session remade knows what is lost by that. What else was lost is told, and other callers are told of both.
func TestWhatARemadeSessionIsTold(t *testing.T) {
	const remade, killed = "was given the image", "SIGKILL"
	for name, tt := range map[string]struct {
		before, caller string
		after          bool // the new kernel dies as well
		want, not      string
	}{
		"its caller":                      {"x", "claude", false, "", "lost"},
		"another":                         {"x", "cursor", false, remade, killed},
		"its caller, of a loss before":    {"die", "claude", false, killed, remade},
		"another, of a loss before":       {"die", "cursor", false, killed, "nothing"},
		"its caller, of the kernel after": {"x", "claude", true, killed, remade},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &sessions.FakeProvisioner{}
				m := sessions.NewTestManager(t, p, choices)
				defer m.Shutdown(context.Background())
				sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", tt.before)))
				if _, _, err := m.Remake(t.Context(), sessions.Alice, "s", "mine", "claude"); err != nil {
					t.Fatal(fault.Text(err))
				}
				if tt.after {
					p.KillLast()
					synctest.Wait()
				}
				r := sessions.Python("s", "x")
				r.Caller = tt.caller
				e := sessions.StartCell(t, m, sessions.Alice, r)
				sessions.WaitFor(t, e)
				if told := e.Preamble(); !strings.Contains(told, tt.want) || strings.Contains(told, tt.not) {
					t.Errorf("it is told %q", told)
				}
			})
		})
	}
}
