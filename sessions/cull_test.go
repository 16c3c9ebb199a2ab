package sessions

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions/files"
)

// culling is a Manager whose kernels live for a while only.
func culling(t *testing.T, p *fakeProvisioner, idle, life time.Duration) *Manager {
	t.Helper()
	return newTestManager(t, p, func(c *Config) { c.IdleTimeout, c.MaxLife = idle, life })
}

// inState fails the test unless alice's session "s" is in a state, with so many kernels in all.
func inState(t *testing.T, m *Manager, want State, live int64) Info {
	t.Helper()
	synctest.Wait()
	info, err := m.Get(t.Context(), alice, "s")
	if got := m.cfg.Provisioner.(*fakeProvisioner).live.Load(); err != nil || info.State != want || got != live {
		t.Errorf("%v: state %q with %d kernels, want %q with %d; %v", time.Now().Format(time.TimeOnly), info.State, got, want, live, err)
	}
	return info
}

func TestIdleKernelIsCulledAndTheNextCellIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := culling(t, p, 0, 0)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		time.Sleep(30*time.Minute - time.Second)
		if info := inState(t, m, Idle, 1); time.Until(info.Ends.At) != time.Second || !info.Ends.Unused {
			t.Errorf("it ends %+v", info.Ends)
		}
		execute(t, m, alice, "s", "y") // puts it off
		time.Sleep(30*time.Minute - time.Second)
		inState(t, m, Idle, 1)
		time.Sleep(time.Second)
		if info := inState(t, m, Culled, 0); !info.Ends.At.IsZero() || info.Generation != 1 || info.Executions != 2 {
			t.Errorf("culled: %+v", info)
		}
		time.Sleep(48 * time.Hour)
		inState(t, m, Culled, 0)
		e, _ := execute(t, m, alice, "s", "z")
		if e.Generation() != 2 || e.Number() != 3 || p.specs[0].Workspace != p.specs[1].Workspace {
			t.Errorf("cell %d in generation %d, workspaces %q and %q", e.Number(), e.Generation(), p.specs[0].Workspace, p.specs[1].Workspace)
		}
		for _, word := range []string{"generation 1", "2000-01-01 00:59:59 UTC", "it was stopped because", "no cell had run for 30 minutes", "variables",
			"lost", "files in the workspace", "history of cells", "kept", "generation 2", "restore_session"} {
			if !strings.Contains(e.Preamble(), word) {
				t.Errorf("preamble does not say %q: %s", word, e.Preamble())
			}
		}
		if e, _ := execute(t, m, alice, "s", "z"); e.Preamble() != "" {
			t.Errorf("told twice: %q", e.Preamble())
		}
	})
}

func TestWhatRunsOrWaitsIsNotCulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, time.Minute, 10*time.Minute)
		defer m.Shutdown(context.Background())
		r := python("s", "sleep 30m")
		r.Timeout = time.Hour
		first := start(t, m, alice, r)
		second := start(t, m, alice, r)
		synctest.Wait()
		began := time.Now()
		time.Sleep(20 * time.Minute)
		if info := inState(t, m, Busy, 1); info.Ends.Unused || info.Ends.At.Sub(began) != 10*time.Minute {
			t.Errorf("it ends %+v", info.Ends)
		}
		wait(t, first)
		wait(t, second)
		if took := time.Since(began); took != time.Hour || second.Generation() != 1 {
			t.Errorf("both took %v, the second in generation %d", took, second.Generation())
		}
		inState(t, m, Culled, 0)
		if e, _ := execute(t, m, alice, "s", "x"); !strings.Contains(e.Preamble(), "had lived for 10 minutes") {
			t.Errorf("preamble %q", e.Preamble())
		}
	})
}

func TestLongestLifeIsThatOfTheKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, 0, time.Hour)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		time.Sleep(40 * time.Minute / 2)
		execute(t, m, alice, "s", "x")
		if _, err := m.Restart(t.Context(), alice, "s"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(15 * time.Minute)
			execute(t, m, alice, "s", "x")
		}
		info := inState(t, m, Idle, 1)
		if left := time.Until(info.Ends.At); left != 15*time.Minute || info.Ends.Unused {
			t.Errorf("it ends in %v: %+v", left, info.Ends)
		}
		time.Sleep(15 * time.Minute)
		inState(t, m, Culled, 0)
	})
}

// Each language's kernels live as long as is said for them, and else as all.
func TestKernelsOfALanguageLiveAsLongAsIsSaidForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, time.Hour, 24*time.Hour)
		m.cfg.Runtimes = map[string]Runtime{"python": {}, "r": {IdleTimeout: 3 * time.Hour}, "bash": {IdleTimeout: -1, MaxLife: 5 * time.Hour}}
		defer m.Shutdown(context.Background())
		began := time.Now()
		for language := range m.cfg.Runtimes {
			wait(t, start(t, m, alice, Request{SessionID: language, Language: language, Code: "x"}))
		}
		for _, step := range []struct {
			language string
			want     End
		}{
			{"python", End{began.Add(time.Hour), true}}, {"r", End{began.Add(3 * time.Hour), true}}, {"bash", End{began.Add(5 * time.Hour), false}},
		} {
			language, want := step.language, step.want
			if info, err := m.Get(t.Context(), alice, language); err != nil || info.Ends != want {
				t.Errorf("%s ends %+v, %v", language, info.Ends, err)
			}
			time.Sleep(time.Until(want.At) - time.Second)
			if info, _ := m.Get(t.Context(), alice, language); info.State != Idle {
				t.Errorf("%s: %s too early", language, info.State)
			}
			time.Sleep(2 * time.Second)
			if info, _ := m.Get(t.Context(), alice, language); info.State != Culled {
				t.Errorf("%s: %s", language, info.State)
			}
		}
		for language, said := range map[string]string{"r": "no cell had run for 3 hours", "bash": "had lived for 5 hours"} {
			e := start(t, m, alice, Request{SessionID: language, Language: language, Code: "x"})
			if wait(t, e); !strings.Contains(e.Preamble(), said) {
				t.Errorf("%s: %s", language, e.Preamble())
			}
		}
	})
}

func TestNeverCulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, -1, -1)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		time.Sleep(1000 * time.Hour)
		if info := inState(t, m, Idle, 1); !info.Ends.At.IsZero() {
			t.Errorf("it ends %+v", info.Ends)
		}
	})
}

func TestLookingAtVariablesIsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, time.Hour, -1)
		m.cfg.Runtimes["python"] = Runtime{Variables: "v"}
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		time.Sleep(50 * time.Minute)
		_, _ = m.Variables(t.Context(), alice, "s") // the fake does not know them
		time.Sleep(50 * time.Minute)
		inState(t, m, Idle, 1)
	})
}

func TestWhoOnlyLooksUsesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, time.Hour, -1)
		m.cfg.Runtimes["python"] = Runtime{Variables: "v"}
		defer m.Shutdown(context.Background())
		_, _ = execute(t, m, alice, "s", "x")
		used := inState(t, m, Idle, 1).LastUsed
		looking := Looking(t.Context())
		for range 3 {
			time.Sleep(15 * time.Minute)
			_, _ = m.Variables(looking, alice, "s") // the fake does not know them
			if _, err := m.Execution(looking, alice, "s", 1); err != nil {
				t.Error(err)
			}
			if _, err := m.Account(looking, alice, "s"); err != nil {
				t.Error(err)
			}
		}
		if info := inState(t, m, Idle, 1); !info.LastUsed.Equal(used) {
			t.Errorf("looking at it used it, %v later", info.LastUsed.Sub(used))
		}
		time.Sleep(15 * time.Minute)
		inState(t, m, Culled, 0)
	})
}

// Who reads what a session did finds it as it was before he asked: when it was last used, and so its place in the list.
func TestReadingIsNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, time.Hour, -1)
		defer m.Shutdown(context.Background())
		_, _ = execute(t, m, alice, "s", "x")
		used := inState(t, m, Idle, 1).LastUsed
		for name, read := range map[string]func() error{
			"its cells":   func() error { _, err := m.Executions(t.Context(), alice, "s", 5); return err },
			"one of them": func() error { _, err := m.Execution(t.Context(), alice, "s", 1); return err },
			"its account": func() error { _, err := m.Account(t.Context(), alice, "s"); return err },
			"its log":     func() error { _, err := m.Log(t.Context(), alice, "s"); return err },
		} {
			time.Sleep(time.Minute)
			if err := read(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if info := inState(t, m, Idle, 1); !info.LastUsed.Equal(used) {
				t.Fatalf("reading %s used it, %v later", name, info.LastUsed.Sub(used))
			}
		}
	})
}

// A cell that comes while its kernel is being stopped runs on the next one.
func TestCellThatComesWhileItsKernelIsCulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{stopTime: 2 * time.Second}, time.Hour, -1)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		time.Sleep(time.Hour + time.Second)
		inState(t, m, Culled, 1)
		if e, _ := execute(t, m, alice, "s", "y"); e.Generation() != 2 || !strings.Contains(e.Preamble(), "it was stopped because") {
			t.Errorf("generation %d, %q", e.Generation(), e.Preamble())
		}
	})
}

func TestCulledSessionCanBeRestartedAndClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := culling(t, &fakeProvisioner{}, time.Hour, -1)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		time.Sleep(time.Hour)
		inState(t, m, Culled, 0)
		if r, err := m.Interrupt(t.Context(), alice, "s"); err != nil || r.Ran || r.VariablesKept {
			t.Errorf("interrupt: %+v, %v", r, err)
		}
		if info, err := m.Restart(t.Context(), alice, "s"); err != nil || info.Generation != 2 || info.State != Idle {
			t.Errorf("restart: %+v, %v", info, err)
		}
		time.Sleep(time.Hour)
		inState(t, m, Culled, 0)
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := m.Get(t.Context(), alice, "s"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("closed: %v", err)
		}
	})
}

// Whoever names a minted session wants it; whoever looks over all sessions does not.
func TestWhatIsUseOfAMintedSession(t *testing.T) {
	for name, tt := range map[string]struct {
		do  func(ctx context.Context, m *Manager, id string) error
		use bool
	}{
		"interrupt": {func(ctx context.Context, m *Manager, id string) error {
			_, err := m.Interrupt(ctx, alice, id)
			return err
		}, true},
		"restart": {func(ctx context.Context, m *Manager, id string) error {
			_, err := m.Restart(ctx, alice, id)
			return err
		}, true},
		"list of files": {func(ctx context.Context, m *Manager, id string) error {
			_, err := m.ListFiles(ctx, alice, id, files.Query{})
			return err
		}, true},
		"reading a cell": {func(ctx context.Context, m *Manager, id string) error {
			_, err := m.Execution(ctx, alice, id, 1)
			return err
		}, true},
		"overview of files": {func(ctx context.Context, m *Manager, id string) error {
			_, err := m.PeekFiles(ctx, alice, id, files.Query{})
			return err
		}, false},
		"list of sessions": {func(ctx context.Context, m *Manager, _ string) error { _, err := m.Accounts(ctx, alice); return err }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := culling(t, &fakeProvisioner{}, time.Hour, -1)
				defer m.Shutdown(context.Background())
				e, _ := execute(t, m, alice, "", "x")
				time.Sleep(m.cfg.MintedIdle - time.Second)
				if err := tt.do(t.Context(), m, e.SessionID()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if infos, err := m.List(t.Context(), alice); err != nil || (len(infos) == 1) != tt.use {
					t.Errorf("%d sessions, %v", len(infos), err)
				}
			})
		})
	}
}

// A kernel that was culled is known by why it ended, also where an earlier server wrote that down.
func TestCulledByWhy(t *testing.T) {
	for why, want := range map[string]bool{
		"it was stopped because no cell had run for 30 minutes": true, "it was culled because no cell had run for 30 minutes": true,
		"it ran out of memory": false, "": false,
	} {
		if wasCulled(why) != want {
			t.Errorf("%q: %v, want %v", why, !want, want)
		}
	}
}
