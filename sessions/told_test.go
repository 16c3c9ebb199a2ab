package sessions

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever restarts a session whose kernel was stopped meanwhile has heard all that there is to say; another client has not.
func TestWhatARestartedSessionIsToldOfItsStoppedKernel(t *testing.T) {
	for caller, told := range map[string]bool{"claude": false, "cursor": true} {
		synctest.Test(t, func(t *testing.T) {
			m := culling(t, &fakeProvisioner{}, time.Hour, -1)
			defer m.Shutdown(context.Background())
			execute(t, m, alice, "s", "x")
			time.Sleep(time.Hour)
			inState(t, m, Culled, 0)
			if _, err := m.RestartBy(t.Context(), alice, "s", "claude"); err != nil {
				t.Fatal(err)
			}
			r := python("s", "x")
			r.Caller = caller
			e := start(t, m, alice, r)
			wait(t, e)
			if got := e.Preamble(); strings.Contains(got, culledBecause) != told || !told && got != "" {
				t.Errorf("%s is told %q", caller, got)
			}
		})
	}
}

// Whoever has a kernel restarted is told so by that, and not by his next cell again; others are, and whoever has no name. What else was
// lost, before and after, is told to everybody.
func TestWhatARestartedSessionIsTold(t *testing.T) {
	const restarted, killed, person = "restarted on request", "SIGKILL", "a person in the viewer restarted"
	for name, tt := range map[string]struct {
		code, by, caller string
		after            bool // the new kernel dies as well
		want, not        string
	}{
		"its caller":                      {"x", "claude", "claude", false, "", "lost"},
		"its caller, while a cell ran":    {"sleep 1h", "claude", "claude", false, "", "lost"},
		"another":                         {"x", "claude", "cursor", false, restarted, killed},
		"another, while a cell ran":       {"sleep 1h", "claude", "cursor", false, restarted + " while this cell ran", killed},
		"nobody knows who":                {"x", "", "", false, restarted, killed},
		"a client, after a person":        {"x", Person, "claude", false, person, killed},
		"its caller, of a loss before":    {"die", "claude", "claude", false, killed, restarted},
		"its caller, of the kernel after": {"x", "claude", "claude", true, killed, restarted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProvisioner{}
				m := newTestManager(t, p)
				defer m.Shutdown(context.Background())
				start(t, m, alice, python("s", tt.code))
				synctest.Wait()
				if _, err := m.RestartBy(t.Context(), alice, "s", tt.by); err != nil {
					t.Fatal(err)
				}
				if tt.after {
					p.KillLast()
					synctest.Wait()
				}
				r := python("s", "x")
				r.Caller = tt.caller
				e := start(t, m, alice, r)
				wait(t, e)
				if told := e.Preamble(); !strings.Contains(told, tt.want) || strings.Contains(told, tt.not) {
					t.Errorf("it is told %q", told)
				}
				r.Code = "y"
				again := start(t, m, alice, r)
				wait(t, again)
				if told := again.Preamble(); told != "" {
					t.Errorf("the cell after it is told %q", told)
				}
			})
		})
	}
}
