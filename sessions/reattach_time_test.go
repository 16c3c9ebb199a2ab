package sessions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// A cell's time counts from its start; one that ended while no server ran has not run out of it.
func TestTimeoutGoesOnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		begun := time.Now()
		for id, code := range map[string]string{"overdue": "sleep 1h", "ended": "steps 20"} {
			r := sessions.Python(id, code)
			r.Timeout = 30 * time.Second
			sessions.StartCell(t, m, sessions.Alice, r)
		}
		time.Sleep(10 * time.Second)
		l.kill()
		time.Sleep(15 * time.Second)

		m, _ = l.start()
		e, _ := recalled(t, m, "overdue", 1)
		r := sessions.WaitFor(t, e)
		if took := time.Since(begun).Round(time.Second); !r.TimedOut || took != 30*time.Second || !r.Interrupt.VariablesKept {
			t.Errorf("after %v it ended with %+v", took, r)
		}
		time.Sleep(time.Hour)
		e, got := recalled(t, m, "ended", 1)
		if r := sessions.WaitFor(t, e); r.TimedOut || r.Status != kernels.StatusOK || got != lines(20) {
			t.Errorf("what had ended is told as %+v with %q", r, got)
		}
	})
}

// That cells have run where files had been put before is written down also when the server was killed during the first one.
func TestFirstCellOfAnEarlierProcessIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		if _, _, err := m.WriteFile(t.Context(), sessions.Alice, "s", "a", nil); err != nil {
			t.Fatal(err)
		}
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "steps 20"))
		time.Sleep(10 * time.Second)
		label := func() string {
			paths, _ := filepath.Glob(filepath.Join(l.dir, "workspaces", "*.json"))
			if len(paths) != 1 {
				t.Fatalf("the labels are %v", paths)
			}
			text, err := os.ReadFile(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		l.kill()
		if text := label(); strings.Contains(text, "python") {
			t.Fatalf("it was noted before: %s", text)
		}
		m, _ = l.start()
		e, _ := recalled(t, m, "s", 1)
		sessions.WaitFor(t, e)
		if err := m.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if text := label(); !strings.Contains(text, `"language":"python"`) {
			t.Errorf("the label is %s", text)
		}
	})
}

// movedStore gives out what was written as if the clock had been set since.
type movedStore struct {
	sessions.Store
	by time.Duration
}

// It does not matter for a cell's timeout that the clock is set while no server runs: the shim tells how long it has run.
func TestTimeoutDoesNotGoByTheClock(t *testing.T) {
	for _, by := range []time.Duration{0, time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, store := kernelstest.NewProvisioner(), storetest.NewMemory()
				defer p.StopAll()
				first := newOnTheWire(t, p, store)
				begun := time.Now()
				r := sessions.Python("s", "sleep 1h")
				r.Timeout = 30 * time.Second
				sessions.StartCell(t, first, sessions.Alice, r)
				time.Sleep(10 * time.Second)
				if _, err := first.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)

				second := newOnTheWire(t, p, movedStore{store.Another(), by})
				defer shutdown(t, second)
				if _, err := second.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				e, _ := second.Execution(t.Context(), sessions.Alice, "s", 1)
				if info := e.Info(); info.Duration.Round(time.Second) != 16*time.Second {
					t.Errorf("after 16 s it has run for %v", info.Duration)
				}
				got := sessions.WaitFor(t, e)
				if took := time.Since(begun).Round(time.Second); !got.TimedOut || took != 30*time.Second {
					t.Errorf("after %v it ended with %+v", took, got)
				}
			})
		})
	}
}
