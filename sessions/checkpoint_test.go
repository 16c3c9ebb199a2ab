package sessions_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/sessions/files"
)

// checkpointing is saving, for kernels that save their variables also while they go on.
func checkpointing(c *sessions.Config) {
	saving(allBack)(c)
	python := c.Runtimes["python"]
	python.Checkpoint = "checkpoint {cell}"
	c.Runtimes["python"], c.CheckpointAfter = python, 10*time.Second
}

// checkpointed begins a session "s" whose cell 1 is saved, and whose cell 2 is not.
func checkpointed(t *testing.T, m *sessions.Manager) {
	t.Helper()
	savedCell(t, m, "sleep 10s")
	time.Sleep(2 * time.Second)
	savedCell(t, m, "x")
}

// A kernel that dies leaves what it had saved when it could, and the next one has it.
func TestADeadKernelsVariablesAreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		defer m.Shutdown(context.Background())
		checkpointed(t, m)
		dead := savedCell(t, m, "die").Info().Result.Death
		tells(t, dead.Cause, "the kernel was killed by SIGKILL; its variables after cell 1 were saved")
		if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || !info.Saved() {
			t.Errorf("%+v, %v", info, err)
		}
		tells(t, savedCell(t, m, "x").Preamble(), "its variables after cell 1 were saved. They are back", "generation 2",
			"Not back: what was done after cell 1 (restore_session runs that again), background work", "not lost")
		tells(t, savedCell(t, m, "x").Preamble(), "not kernel")
		savedCell(t, m, "die") // before anything else was saved
		tells(t, savedCell(t, m, "x").Preamble(), "its variables after cell 1 were saved. They are back", "generation 3")
	})
}

// What is back is not run again.
func TestRestoreRunsWhatCameAfterTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		defer m.Shutdown(context.Background())
		checkpointed(t, m)
		savedCell(t, m, "die")
		r := restore(t, m, sessions.RestoreOptions{})
		tells(t, r.Loaded, "They are back", "Not back: what was done after cell 1, background", "not restore_session")
		if steps(r) != "2>4 ok" {
			t.Errorf("%s, %+v", steps(r), r)
		}
		savedCell(t, m, "y")
		savedCell(t, m, "die")
		tells(t, savedCell(t, m, "z").Preamble(), "after cell 1 were saved")
		r = restore(t, m, sessions.RestoreOptions{})
		tells(t, r.Loaded, "generation 3, began with the variables of the one before, saved after cell 1.")
		if steps(r) != "2>8 ok, 5>9 ok" {
			t.Errorf("of two generations: %s, %+v", steps(r), r)
		}
		if r := restore(t, m, sessions.RestoreOptions{Generation: 1}); steps(r) != "1>10 ok" {
			t.Errorf("by its number: %s, %+v", steps(r), r)
		}
	})
}

// There is nothing to tell of what came later where nothing did that succeeded.
func TestACheckpointOfTheLastCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		defer m.Shutdown(context.Background())
		savedCell(t, m, "sleep 10s")
		time.Sleep(2 * time.Second)
		l.p.KillLast()
		synctest.Wait()
		tells(t, savedCell(t, m, "x").Preamble(), "They are back", "Not back: background work")
		savedCell(t, m, "die")
		tells(t, savedCell(t, m, "x").Preamble(), "They are back", "Not back: what was done after cell 1 (restore_session runs that again)")
	})
}

// What a kernel died over is of no use to the next one.
func TestWhatADeadKernelHadNotSavedToTheEndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		defer m.Shutdown(context.Background())
		savedCell(t, m, "x")
		for _, name := range images.UnfinishedFiles {
			if err := os.WriteFile(filepath.Join(l.p.Specs()[0].Workspace, name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		savedCell(t, m, "die")
		tells(t, savedCell(t, m, "x").Preamble(), "All variables")
		if left, err := filepath.Glob(filepath.Join(l.p.Specs()[0].Workspace, images.SavedFile+"*")); err != nil || left != nil {
			t.Errorf("there is %q, %v", left, err)
		}
	})
}

// Who lists the workspace while variables are saved sees no file that is gone a moment later.
func TestUnfinishedFilesAreNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		defer m.Shutdown(context.Background())
		savedCell(t, m, "x")
		for _, name := range append(images.UnfinishedFiles, images.SavedFile) {
			if err := os.WriteFile(filepath.Join(l.p.Specs()[0].Workspace, name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		listing, err := m.ListFiles(t.Context(), sessions.Alice, "s", files.Query{Most: 100})
		if err != nil || len(listing.Entries) != 1 || listing.Entries[0].Path != images.SavedFile {
			t.Errorf("%+v, %v", listing, err)
		}
	})
}

// Saving is for what would take long to have again, and must not take long itself.
func TestWhenVariablesAreSavedWhileTheKernelGoesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		cells  []string
		takes  time.Duration
		change func(*sessions.Config)
		saved  bool
	}{
		"one that took long":         {cells: []string{"sleep 11s"}, saved: true},
		"many that did together":     {cells: []string{"sleep 4s", "fail", "sleep 4s", "sleep 4s"}, saved: true},
		"short ones":                 {cells: []string{"x", "sleep 4s", "x"}},
		"turned off":                 {cells: []string{"sleep 11s"}, change: func(c *sessions.Config) { c.CheckpointAfter = 0 }},
		"no variables are saved":     {cells: []string{"sleep 11s"}, change: func(c *sessions.Config) { c.SaveVariables = false }},
		"not long enough for itself": {cells: []string{"sleep 11s", "", "sleep 30s"}, takes: 2 * time.Second},
		"long enough for itself":     {cells: []string{"sleep 11s", "", "sleep 41s"}, takes: 2 * time.Second, saved: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				change := append([]func(*sessions.Config){checkpointing}, tt.change)
				if tt.change == nil {
					change = change[:1]
				}
				m, _ := l.start(change...)
				defer m.Shutdown(context.Background())
				l.p.SavesIn(tt.takes)
				savedFile := func() string { return filepath.Join(l.p.Specs()[0].Workspace, images.SavedFile) }
				for _, code := range tt.cells {
					if code == "" {
						time.Sleep(2 * time.Second)
						if err := os.Remove(savedFile()); err != nil {
							t.Fatal(err)
						}
						continue
					}
					savedCell(t, m, code)
				}
				time.Sleep(2 * time.Second)
				if _, err := os.Stat(savedFile()); (err == nil) != tt.saved {
					t.Errorf("saved: %v", err)
				}
			})
		})
	}
}

// A kernel that must be restarted to end a cell has died, for whoever has worked in it.
func TestAKernelThatHadToBeRestartedHasWhatWasSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		defer m.Shutdown(context.Background())
		checkpointed(t, m)
		r := sessions.Python("s", "stubborn")
		r.Timeout = time.Minute
		e := sessions.StartCell(t, m, sessions.Alice, r)
		result := sessions.WaitFor(t, e)
		tells(t, result.Death.Cause, "did not stop when it was interrupted; its variables after cell 1 were saved")
		if i := result.Interrupt; i.VariablesKept || !i.VariablesSaved {
			t.Errorf("%+v", i)
		}
		tells(t, savedCell(t, m, "x").Preamble(), "They are back", "generation 2")
	})
}

// Whoever wants a fresh kernel has one, also later.
func TestACheckpointThatNobodyWants(t *testing.T) {
	restart := func(t *testing.T, m *sessions.Manager) {
		if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
			t.Error(fault.Text(err))
		}
	}
	for name, unwanted := range map[string]func(*testing.T, *sessions.Manager){
		"restarted": restart,
		"restarted in a cell": func(t *testing.T, m *sessions.Manager) {
			e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 10m"))
			synctest.Wait()
			restart(t, m)
			tells(t, sessions.WaitFor(t, e).Death.Cause, "restarted on request", "not saved")
		},
		"closed": func(t *testing.T, m *sessions.Manager) {
			if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil {
				t.Error(fault.Text(err))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(checkpointing)
				defer m.Shutdown(context.Background())
				checkpointed(t, m)
				unfinished := filepath.Join(l.p.Specs()[0].Workspace, images.SavedFile+".checkpoint")
				if err := os.WriteFile(unfinished, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				unwanted(t, m)
				if _, err := os.Stat(unfinished); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("what is still being saved is there: %v", err)
				}
				tells(t, savedCell(t, m, "x").Preamble(), "All variables", "lost", "not saved")
				savedCell(t, m, "die")
				tells(t, savedCell(t, m, "x").Preamble(), "All variables", "lost", "not saved")
			})
		})
	}
}

// The machine, and with it everything that ran on it, may be gone.
func TestACheckpointOutlivesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		checkpointed(t, m)
		l.kill()
		l.p.Reboot()
		m, _ = l.start(checkpointing)
		defer m.Shutdown(context.Background())
		e := savedCell(t, m, "x")
		tells(t, e.Preamble(), "while no server ran", "its variables after cell 1 were saved. They are back", "what was done after cell 1 (restore_session")
		if r := restore(t, m, sessions.RestoreOptions{}); steps(r) != "2>4 ok" {
			t.Errorf("%s, %+v", steps(r), r)
		}
	})
}

// A call that keeps a kernel from being culled does not cost it what it had saved before.
func TestACheckpointOutlivesACullThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		defer m.Shutdown(context.Background())
		l.p.SavesIn(20 * time.Second)
		checkpointed(t, m)
		time.Sleep(30*time.Minute + 10*time.Second)
		if generation := savedCell(t, m, "x").Generation(); generation != 1 {
			t.Fatalf("it has generation %d", generation)
		}
		savedCell(t, m, "die")
		tells(t, savedCell(t, m, "x").Preamble(), "its variables after cell 1 were saved. They are back")
	})
}

// A cell that runs when the server is stopped keeps its kernel from saving more.
func TestACheckpointBeforeTheCellThatRanWhenTheServerWasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(checkpointing)
		checkpointed(t, m)
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 10m"))
		synctest.Wait()
		if err := m.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		m, _ = l.start(checkpointing)
		defer m.Shutdown(context.Background())
		tells(t, savedCell(t, m, "x").Preamble(), "the server was stopped; its variables after cell 1 were saved. They are back", "what was done after cell 1 (restore")
	})
}
