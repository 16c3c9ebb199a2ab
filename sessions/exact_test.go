package sessions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// A cell that runs is found again however many wait behind it, also when fewer may do so now.
func TestRunningCellBeforeALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(func(c *sessions.Config) { c.MaxQueue = 500 })
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "steps 30"))
		for range 200 {
			sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "waits"))
		}
		time.Sleep(10 * time.Second)
		l.kill()
		shutdown(t, m) // or it would go on with the cells that wait
		m, _ = l.start(func(c *sessions.Config) { c.MaxQueue = 1 })
		if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || info.State != sessions.Busy {
			t.Errorf("it is %+v, %v", info, err)
		}
		e, got := recalled(t, m, "s", 1)
		if r := sessions.WaitFor(t, e); got != lines(30) {
			t.Errorf("the cell that ran ended with %+v and %q", r, got)
		}
		for n := 2; n <= 201; n++ {
			e, err := m.Execution(t.Context(), sessions.Alice, "s", n)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Wait(t.Context()); err == nil {
				t.Errorf("cell %d ran", n)
			}
		}
	})
}

// A restart of the server is no use of a session, whether its kernel is found again or not.
func TestUsedBeforeARestart(t *testing.T) {
	for name, between := range map[string]func(*life){"found": func(*life) {}, "gone": func(l *life) { l.p.Reboot() }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				e, _ := runCell(t, m, "s", "x = 1")
				_, used := e.Phase()
				for range 2 {
					time.Sleep(time.Hour / 4)
					l.kill()
					between(l)
					m, _ = l.start()
					all, err := m.Accounts(t.Context(), sessions.Alice)
					if err != nil || len(all) != 1 || !all[0].Used.Equal(used) {
						t.Errorf("used %v, not %v: %v", all, used, err)
					}
					_, _ = m.Get(t.Context(), sessions.Alice, "s") // looks for its kernel
				}
			})
		})
	}
}

// A cell that ended while no server ran took its own time.
func TestDurationOfACellThatEndedUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := kernelstest.NewProvisioner(), storetest.NewMemory()
		defer p.StopAll()
		m := newOnTheWire(t, p, store)
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 20s"))
		time.Sleep(5 * time.Second)
		if left, err := m.Leave(t.Context()); err != nil || left != 1 {
			t.Fatal(left, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		m = newOnTheWire(t, p, store.Another())
		defer shutdown(t, m)
		if _, err := m.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		e, _ := recalled(t, m, "s", 1)
		if r := sessions.WaitFor(t, e); r.Duration.Round(time.Second) != 20*time.Second {
			t.Errorf("it took %v", r.Duration)
		}
	})
}

// The first cell after a restart names its files like any other, and so does one that was running.
func TestFilesOfTheFirstCellAfterARestart(t *testing.T) {
	for name, runs := range map[string]bool{"begun after it": false, "begun before it": true} {
		t.Run(name, func(t *testing.T) {
			p, store, dir := &sessions.FakeProvisioner{}, storetest.NewMemory(), t.TempDir()
			m := sessions.NewTestManager(t, p, with(store, dir))
			runCell(t, m, "s", "x = 1")
			write := func(name string) {
				t.Helper()
				folders, _ := filepath.Glob(filepath.Join(dir, "workspaces", "????????????????"))
				if err := os.WriteFile(filepath.Join(folders[0], name), []byte(name), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			write("old.txt")
			time.Sleep(50 * time.Millisecond) // the file system's clock is coarse
			number := 2
			cell := func() *sessions.Execution {
				return sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "steps 1"))
			}
			want := []string{"new.txt"}
			if e := cell(); runs {
				if err := e.Saved(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
				write("before.txt")
				want = append(want, "before.txt")
			} else {
				sessions.WaitFor(t, e)
				number++
			}
			p.KillServer()
			store.Kill()
			m = sessions.NewTestManager(t, p, with(store.Another(), dir))
			if _, err := m.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !runs {
				cell()
			}
			write("new.txt")
			e, err := m.Execution(t.Context(), sessions.Alice, "s", number)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range sessions.WaitFor(t, e).Files {
				got = append(got, f.Path)
			}
			if slices.Sort(want); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("it names %v, not %v", got, want)
			}
		})
	}
}
