package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// saving has the fake's kernels save their variables, and those that come after load loads.
func saving(loads string) func(*sessions.Config) {
	return func(c *sessions.Config) {
		c.Provisioner.(*sessions.FakeProvisioner).Loads(loads)
		c.SaveVariables = true
		c.Runtimes = map[string]sessions.Runtime{
			"python": {Kernelspec: kernels.Kernelspec{Name: "python3"}, Image: "python:latest", Save: "save", Load: "load"},
		}
	}
}

// savedCell runs a cell of alice's session "s" and returns what it is told.
func savedCell(t *testing.T, m *sessions.Manager, code string) *sessions.Execution {
	t.Helper()
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", code))
	sessions.WaitFor(t, e)
	return e
}

// tells fails the test unless a text has these words, and those after "not" in it have not.
func tells(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		rest, not := strings.CutPrefix(word, "not ")
		if strings.Contains(text, rest) == not {
			t.Errorf("%q: %s", word, text)
		}
	}
}

const allBack = `{"back":1}`

func TestACulledKernelsVariablesAreBack(t *testing.T) {
	for name, tt := range map[string]struct {
		loads string
		not   string // what is said of the session not to be back
		words []string
	}{
		"all":      {`{"back":3}`, "", []string{"no cell had run for 30 minutes; its variables were saved. They are back", "generation 2", "Not back: background work", "not lost", "not restore_session"}},
		"not all":  {`{"back":3,"left":["gen (generator)","conn (sqlite3.Connection)"],"more":2}`, "gen (generator), conn (sqlite3.Connection), 2 more", []string{"Not back: gen (generator), conn (sqlite3.Connection), 2 more, background"}},
		"a part":   {`{"back":1200,"left":["b","c"],"why":"TypeError: no"}`, "b, c", []string{"1,200 of them are back", "TypeError: no", "Not back: b, c, background"}},
		"none":     {`{"back":0,"why":"MemoryError: "}`, "", []string{"could not be loaded: MemoryError", "All variables", "lost", "restore_session"}},
		"nonsense": {`[]`, "", []string{"could not be loaded: the answer cannot be read", "All variables", "lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(saving(tt.loads))
				defer m.Shutdown(context.Background())
				savedCell(t, m, "x")
				time.Sleep(31 * time.Minute)
				if live := l.p.Live(); live != 0 {
					t.Fatalf("%d kernels run", live)
				}
				tells(t, savedCell(t, m, "x").Preamble(), tt.words...)
				tells(t, savedCell(t, m, "x").Preamble(), "not kernel")
				if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || info.NotBack != tt.not {
					t.Errorf("not back: %q, %v", info.NotBack, err)
				}
			})
		})
	}
}

// Who comes while the variables are saved has the kernel.
func TestWhoComesWhileVariablesAreSavedHasTheKernel(t *testing.T) {
	for name, comes := range map[string]func(*testing.T, *sessions.Manager) int{
		"a cell": func(t *testing.T, m *sessions.Manager) int { return savedCell(t, m, "x").Generation() },
		"a restart": func(t *testing.T, m *sessions.Manager) int {
			if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
				t.Error(fault.Text(err))
			}
			e := savedCell(t, m, "x")
			tells(t, e.Preamble(), "restarted on request", "not saved")
			return e.Generation() - 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(saving(allBack))
				defer m.Shutdown(context.Background())
				l.p.SavesIn(20 * time.Second)
				savedCell(t, m, "x")
				time.Sleep(30*time.Minute + 10*time.Second)
				file := saveByChance(t, l)
				if generation := comes(t, m); generation != 1 {
					t.Errorf("it has generation %d", generation)
				}
				if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("what was saved just then is still there: %v", err)
				}
				time.Sleep(31 * time.Minute)
				if live := l.p.Live(); live != 0 {
					t.Errorf("it was not culled later: %d kernels run", live)
				}
				tells(t, savedCell(t, m, "x").Preamble(), "They are back")
			})
		})
	}
}

// saveByChance has the first kernel save its variables just when that is given up.
func saveByChance(t *testing.T, l *life) (file string) {
	t.Helper()
	file = filepath.Join(l.p.Specs()[0].Workspace, images.SavedFile)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A session that is closed while its variables are saved leaves none to a later one.
func TestASessionThatIsClosedWhileVariablesAreSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(saving(allBack))
		defer m.Shutdown(context.Background())
		l.p.SavesIn(20 * time.Second)
		savedCell(t, m, "x")
		time.Sleep(30*time.Minute + 10*time.Second)
		saveByChance(t, l)
		if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil {
			t.Fatal(fault.Text(err))
		}
		tells(t, savedCell(t, m, "x").Preamble(), "was closed", "not saved", "All variables", "lost")
	})
}

// A kernel that takes too long to save its variables, or dies of it, is culled all the same.
func TestVariablesThatCannotBeSaved(t *testing.T) {
	for name, tt := range map[string]struct {
		takes time.Duration
		kill  bool
		why   string
	}{
		"too long": {takes: time.Hour, why: "it took longer than 1 minute"},
		"it dies":  {takes: 10 * time.Second, kill: true, why: "the kernel was killed by SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(saving(allBack))
				defer m.Shutdown(context.Background())
				l.p.SavesIn(tt.takes)
				savedCell(t, m, "x")
				time.Sleep(30*time.Minute + 5*time.Second)
				if tt.kill {
					l.p.KillLast()
				}
				time.Sleep(2 * time.Minute)
				if live := l.p.Live(); live != 0 {
					t.Errorf("%d kernels run", live)
				}
				tells(t, savedCell(t, m, "x").Preamble(), "no cell had run for 30 minutes; its variables were not saved: "+tt.why+".", "All variables", "lost")
			})
		})
	}
}

// Variables are of no use to who wants a session without them.
func TestVariablesThatNobodyWants(t *testing.T) {
	for name, tt := range map[string]struct {
		unwanted func(*testing.T, *sessions.Manager) error
		told     string
	}{
		"restarted": {func(t *testing.T, m *sessions.Manager) error {
			_, err := m.Restart(t.Context(), sessions.Alice, "s")
			return err
		}, "no cell had run"},
		"closed": {func(t *testing.T, m *sessions.Manager) error {
			return m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{})
		}, "was closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(saving(allBack))
				defer m.Shutdown(context.Background())
				savedCell(t, m, "x")
				file := filepath.Join(l.p.Specs()[0].Workspace, images.SavedFile)
				time.Sleep(31 * time.Minute)
				if _, err := os.Stat(file); err != nil {
					t.Fatal(err)
				}
				if err := tt.unwanted(t, m); err != nil {
					t.Fatal(fault.Text(err))
				}
				if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the file is still there: %v", err)
				}
				tells(t, savedCell(t, m, "x").Preamble(), tt.told, "not saved", "All variables", "lost")
			})
		})
	}
}

// Variables outlive servers: those of a kernel that was culled, and those of one that is stopped with its server.
func TestSavedVariablesOutliveTheServer(t *testing.T) {
	for name, end := range map[string]func(*life, *sessions.Manager){
		"culled, then killed":        func(l *life, _ *sessions.Manager) { time.Sleep(31 * time.Minute); l.kill() },
		"culled, then left":          func(l *life, m *sessions.Manager) { time.Sleep(31 * time.Minute); l.leave(m) },
		"culled, then stopped":       func(l *life, m *sessions.Manager) { time.Sleep(31 * time.Minute); l.stop(m) },
		"stopped":                    func(l *life, m *sessions.Manager) { l.stop(m) },
		"stopped, and a kernel less": func(l *life, m *sessions.Manager) { l.stop(m); l.failOnce() },
	} {
		for pool := range 2 {
			t.Run(fmt.Sprintf("%s, %d in the pool", name, pool), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLife(t)
					m, _ := l.start(saving(allBack))
					savedCell(t, m, "x")
					end(l, m)
					m, _ = l.start(saving(allBack), func(c *sessions.Config) { c.PoolSize = pool })
					defer m.Shutdown(context.Background())
					m.StartPool()
					time.Sleep(time.Minute)
					if ready := m.Stats().Pool.Ready["python"]; ready != pool {
						t.Fatalf("%d kernels are ready", ready)
					}
					tells(t, savedCell(t, m, "x").Preamble(), "variables were saved", "They are back")
				})
			})
		}
	}
}

// A session whose kernel is busy when the server stops has nothing to save: nobody waits for that.
func TestABusyKernelSavesNothingAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(saving(allBack))
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 10m"))
		synctest.Wait()
		began := time.Now()
		l.stop(m)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		m, _ = l.start(saving(allBack))
		defer m.Shutdown(context.Background())
		tells(t, savedCell(t, m, "x").Preamble(), "All variables", "lost", "its variables were not saved: a cell was running")
	})
}

// A server that stops while variables are saved lets that end, and one that leaves its kernels leaves this one, too.
func TestAServerThatEndsWhileVariablesAreSaved(t *testing.T) {
	for name, tt := range map[string]struct {
		end        func(*life, *sessions.Manager)
		generation int
		words      []string
	}{
		"stopped": {func(l *life, m *sessions.Manager) { l.stop(m) }, 2, []string{"variables were saved", "They are back"}},
		"left":    {func(l *life, m *sessions.Manager) { l.leave(m) }, 1, []string{"not kernel"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(saving(allBack))
				l.p.SavesIn(20 * time.Second)
				savedCell(t, m, "x")
				time.Sleep(30*time.Minute + 17*time.Second)
				tt.end(l, m)
				m, _ = l.start(saving(allBack))
				defer m.Shutdown(context.Background())
				time.Sleep(10 * time.Second)
				e := savedCell(t, m, "x")
				if e.Generation() != tt.generation {
					t.Errorf("it has generation %d", e.Generation())
				}
				tells(t, e.Preamble(), tt.words...)
			})
		})
	}
}

// A restoration has nothing to run where the variables are back; those of a generation that is named run again.
func TestRestoreLoadsWhatWasSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(saving(allBack))
		defer m.Shutdown(context.Background())
		savedCell(t, m, "x")
		time.Sleep(31 * time.Minute)
		r := restore(t, m, sessions.RestoreOptions{})
		tells(t, r.Loaded, "They are back", "generation 2")
		if len(r.Cells) > 0 || r.From != 1 {
			t.Errorf("%+v", r)
		}
		tells(t, savedCell(t, m, "x").Preamble(), "not kernel") // whoever asked for it knows
		if r := restore(t, m, sessions.RestoreOptions{}); len(r.Cells) > 0 || !strings.Contains(r.Loaded, "generation 2, began with the variables") {
			t.Errorf("while it lives: %+v", r)
		}
		if r := restore(t, m, sessions.RestoreOptions{Generation: 1}); steps(r) != "1>3 ok" || r.Loaded != "" {
			t.Errorf("%s, %+v", steps(r), r)
		}
	})
}

// Variables that were loaded, and that no cell has used since, are saved again, and go with a restart.
func TestLoadedVariablesAreVariables(t *testing.T) {
	for name, tt := range map[string]struct {
		then  func(*testing.T, *sessions.Manager)
		words []string
	}{
		"culled": {func(*testing.T, *sessions.Manager) { time.Sleep(31 * time.Minute) },
			[]string{"generation 2", "its variables were saved. They are back on a new kernel, generation 3"}},
		"restarted": {func(t *testing.T, m *sessions.Manager) {
			if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
				t.Error(fault.Text(err))
			}
		}, []string{"restarted on request", "generation 3", "All variables", "lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(saving(allBack))
				defer m.Shutdown(context.Background())
				savedCell(t, m, "x")
				time.Sleep(31 * time.Minute)
				tells(t, restore(t, m, sessions.RestoreOptions{}).Loaded, "They are back")
				tt.then(t, m)
				tells(t, savedCell(t, m, "x").Preamble(), tt.words...)
			})
		})
	}
}

// A session that gets another image takes its variables along.
func TestRemakeKeepsVariables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(choices, saving(allBack))
		defer m.Shutdown(context.Background())
		savedCell(t, m, "x")
		_, loaded, err := m.Remake(t.Context(), sessions.Alice, "s", "mine", "")
		if err != nil {
			t.Fatal(fault.Text(err))
		}
		tells(t, loaded, "was given the image", "They are back", "generation 2")
		tells(t, savedCell(t, m, "x").Preamble(), "not kernel") // whoever called Remake knows
	})
}

// What a kernel had that died is made of all that its variables were made of, those that it began with among it.
func TestRestoreGoesBackToWhereVariablesBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(saving(allBack))
		defer m.Shutdown(context.Background())
		savedCell(t, m, "a")
		l.p.KillLast()
		savedCell(t, m, "b")
		time.Sleep(31 * time.Minute)
		savedCell(t, m, "c")
		time.Sleep(31 * time.Minute)
		savedCell(t, m, "d")
		l.p.KillLast()
		synctest.Wait()
		if r := restore(t, m, sessions.RestoreOptions{}); steps(r) != "2>5 ok, 3>6 ok, 4>7 ok" || r.From != 2 || r.Earlier != 1 {
			t.Errorf("%s, %+v", steps(r), r)
		}
	})
}
