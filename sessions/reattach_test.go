package sessions_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// Whether the server was killed or left, a session goes on with its kernel, its numbers and the cell that runs.
func TestSessionsGoOnWithTheirKernels(t *testing.T) {
	for name, end := range map[string]func(*life, *sessions.Manager){
		"killed": func(l *life, _ *sessions.Manager) { l.kill() },
		"left":   func(l *life, m *sessions.Manager) { l.leave(m) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				runCell(t, m, "idle", "x = 1")
				runCell(t, m, "busy", "x = 1")
				sessions.StartCell(t, m, sessions.Alice, sessions.Python("busy", "steps 30"))
				sessions.StartCell(t, m, sessions.Alice, sessions.Python("busy", "waits"))
				time.Sleep(10 * time.Second)
				end(l, m)
				time.Sleep(5 * time.Second)

				m, unknown := l.start()
				if len(unknown) != 0 {
					t.Errorf("nobody wants %v", unknown)
				}
				e, got := recalled(t, m, "busy", 2)
				if r := sessions.WaitFor(t, e); r.Status != kernels.StatusOK || got != lines(30) {
					t.Errorf("the cell that ran ended with %s and %q", r.Status, got)
				}
				if e, err := m.Execution(t.Context(), sessions.Alice, "busy", 3); err != nil {
					t.Error(err)
				} else if _, err := e.Wait(t.Context()); fault.KindOf(err) != fault.Unavailable {
					t.Errorf("the cell that waited ended with %v", err)
				}
				for _, id := range []string{"idle", "busy"} {
					e, _ := runCell(t, m, id, "on")
					want := map[string]int{"idle": 2, "busy": 4}[id]
					if e.Number() != want || e.Generation() != 1 || e.Preamble() != "" {
						t.Errorf("%s goes on with cell %d of generation %d, told %q", id, e.Number(), e.Generation(), e.Preamble())
					}
				}
			})
		})
	}
}

// A kernel that had died before the server ended is told of by the next server, with its true cause.
func TestDeathBeforeTheServerEndsIsTold(t *testing.T) {
	for name, end := range map[string]func(*life, *sessions.Manager){
		"killed": func(l *life, _ *sessions.Manager) { l.kill() },
		"left": func(l *life, m *sessions.Manager) {
			if n := l.leave(m); n != 0 {
				l.t.Errorf("%d kernels are left", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, sessions.Python("dead", "die")))
				end(l, m)
				m, _ = l.start()
				if infos, err := m.List(t.Context(), sessions.Alice); err != nil || len(infos) != 1 || !strings.Contains(infos[0].Lost, "SIGKILL") {
					t.Errorf("the list is %+v, %v", infos, err)
				}
				e, _ := runCell(t, m, "dead", "on")
				if told := e.Preamble(); !strings.Contains(told, "generation 1") || !strings.Contains(told, "SIGKILL") {
					t.Errorf("it is told %q", told)
				}
			})
		})
	}
}

func (s movedStore) Unended(ctx context.Context, ref sessions.SessionRef) ([]sessions.StoredExecution, error) {
	all, err := s.Store.Unended(ctx, ref)
	for i, e := range all {
		if !e.Started.IsZero() {
			all[i].Started = e.Started.Add(-s.by)
		}
	}
	return all, err
}

// A cell of an earlier process is interrupted like any other.
func TestInterruptAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 1h"))
		time.Sleep(time.Second)
		l.kill()
		m, _ = l.start()
		report, err := m.Interrupt(t.Context(), sessions.Alice, "s")
		if err != nil || !report.Ran || report.Rung != sessions.RungInterrupt || !report.VariablesKept {
			t.Errorf("interrupted: %+v, %v", report, err)
		}
	})
}

// A prompt that was open when the server went is refused: nobody is left who could be asked.
func TestPromptOfAnEarlierServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		r := sessions.Python("s", "ask name")
		r.Attended = true
		sessions.StartCell(t, m, sessions.Alice, r)
		time.Sleep(time.Second)
		l.kill()
		m, _ = l.start()
		_, got := recalled(t, m, "s", 1)
		if !strings.Contains(got, "the server restarted") {
			t.Errorf("the cell was told %q", got)
		}
	})
}

// What became of a kernel while no server ran is told, with the cause as far as it is known.
func TestDeathBetweenServers(t *testing.T) {
	tests := map[string]struct {
		happens func(*life)
		want    string
	}{
		"the process died": {func(l *life) { l.p.KillLast() }, "killed by SIGKILL"},
		"all is gone":      {func(l *life) { l.p.Reboot() }, "ended while no server ran, between "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "steps 100"))
				time.Sleep(10 * time.Second)
				l.kill()
				tt.happens(l)

				m, _ = l.start()
				next, _ := runCell(t, m, "s", "on")
				if next.Number() != 2 || next.Generation() != 2 || !strings.Contains(next.Preamble(), tt.want) {
					t.Errorf("cell %d, generation %d, is told %q", next.Number(), next.Generation(), next.Preamble())
				}
				e, got := recalled(t, m, "s", 1)
				if r := sessions.WaitFor(t, e); r.Status != kernels.StatusDied || got != lines(11) {
					t.Errorf("what ran is told as %+v with %q", r, got)
				}
			})
		})
	}
}

// A kernel that is there and of no use is stopped, and its session says why.
func TestKernelThatCannotBeGoneOnWith(t *testing.T) {
	broken := fault.New(fault.Unavailable, "the shim speaks another language")
	for name, tt := range map[string]struct {
		fail func(*life, error)
		want string
	}{
		"it is not answered":  {func(l *life, err error) { l.p.NotReady(err) }, "it did not answer when the server was back: the shim"},
		"it is not connected": {func(l *life, err error) { l.p.NotConnected(err) }, "it could not be reached when the server was back: the shim"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				runCell(t, m, "s", "x = 1")
				l.kill()
				tt.fail(l, broken)
				m, _ = l.start()
				synctest.Wait()
				if left, err := l.p.List(t.Context()); err != nil || len(left) != 0 {
					t.Errorf("left: %v, %v", left, err)
				}
				tt.fail(l, nil)
				if next, _ := runCell(t, m, "s", "on"); next.Generation() != 2 || !strings.Contains(next.Preamble(), tt.want) {
					t.Errorf("the next cell runs on generation %d and is told %q", next.Generation(), next.Preamble())
				}
			})
		})
	}
}

// A full disk takes no variables along: a kernel that the store knows of is left, one that it does not is stopped.
func TestKernelsAreLeftThoughTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "known", "x = 1")
		l.store.Fail(fault.New(fault.Unavailable, "the disk is full"))
		if _, r := runCell(t, m, "known", "x = 2"); r.Unsaved == nil {
			t.Fatal("the store works")
		}
		runCell(t, m, "unknown", "x = 1")
		if n := l.leave(m); n != 1 {
			t.Errorf("%d kernels were left", n)
		}
		m, unknown := l.start()
		if len(unknown) > 0 {
			t.Errorf("of no use are %v", unknown)
		}
		if e, _ := runCell(t, m, "known", "on"); e.Generation() != 1 || e.Preamble() != "" {
			t.Errorf("the cell runs in generation %d, told %q", e.Generation(), e.Preamble())
		}
	})
}

// A kernel is not left whose history is not saved any more: nothing tells the next process of it.
func TestKernelIsNotLeftWithoutAHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "s", "x = 1")
		l.store.Fail(fault.New(fault.Conflict, "the session was deleted"))
		runCell(t, m, "s", "x = 2")
		if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
			t.Fatal(err)
		}
		if n := l.leave(m); n != 0 {
			t.Errorf("%d kernels were left", n)
		}
		if refs, err := l.p.List(t.Context()); err != nil || len(refs) > 0 {
			t.Errorf("there still are %v, %v", refs, err)
		}
	})
}

// Kernels of sessions with a minted id that nobody came back to, and of those that were closed, are nobody's.
func TestKernelsThatNobodyWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "named", "x = 1")
		unused, _ := runCell(t, m, "", "x = 1")
		used, _ := runCell(t, m, "", "x = 1")
		runCell(t, m, used.SessionID(), "x = 2")
		running := sessions.StartCell(t, m, sessions.Alice, sessions.Python("named", "sleep 1m"))
		time.Sleep(time.Second)
		if n := l.leave(m); n != 2 {
			t.Errorf("%d kernels were left", n)
		}
		if _, err := running.Wait(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Hint(err), "get_execution") {
			t.Errorf("whoever waited for the cell is told %v", err)
		}
		m, _ = l.start()
		for id, want := range map[string]bool{"named": true, used.SessionID(): true, unused.SessionID(): false} {
			if _, err := m.Get(t.Context(), sessions.Alice, id); (err == nil) != want {
				t.Errorf("%s: %v", id, err)
			}
		}
		l.kill()

		m, unknown := l.start(func(c *sessions.Config) { c.Runtimes = map[string]sessions.Runtime{"bash": {}} })
		if len(unknown) != 2 {
			t.Errorf("without its language a kernel is wanted: only %v are not", unknown)
		}
		l.p.Reboot()
		shutdown(t, m)
	})
}

// A session of a minted id that was found again is culled like any other, unless somebody comes back to it.
func TestMintedSessionFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		unused, _ := runCell(t, m, "", "x = 1")
		used, _ := runCell(t, m, "", "x = 1")
		l.kill()
		m, _ = l.start()
		if e, _ := runCell(t, m, used.SessionID(), "x"); e.Generation() != 1 {
			t.Errorf("it goes on with generation %d", e.Generation())
		}
		time.Sleep(10 * time.Minute)
		for id, want := range map[string]bool{used.SessionID(): true, unused.SessionID(): false} {
			if _, err := m.Get(t.Context(), sessions.Alice, id); (err == nil) != want {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

// Who asks for a session whose kernel is still looked for waits no longer than he wants to.
func TestCallersDoNotWaitForAKernelThatIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "s", "x = 1")
		l.kill()
		l.p.AttachesIn(10 * time.Second)
		m = l.begin()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Get(ctx, sessions.Alice, "s"); fault.KindOf(err) != fault.Timeout || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if info, err := idleSoon(t, m, "s"); err != nil || info.State != sessions.Idle {
			t.Errorf("later: %+v, %v", info, err)
		}
	})
}

// A list names the sessions of an earlier server that have no kernel any more, without anybody having used them: their kernel
// ended before that server did, or while none ran.
func TestListNamesSessionsThatLostTheirKernel(t *testing.T) {
	for name, lose := range map[string]func(*life){
		"before the server ended": func(l *life) { l.p.KillLast(); l.kill() },
		"while no server ran":     func(l *life) { l.kill(); l.p.KillLast() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				runCell(t, m, "s", "x = 1")
				lose(l)
				m, _ = l.start()
				synctest.Wait() // a kernel that is found again and dies looks as if it started until its end is committed
				infos, err := m.List(t.Context(), sessions.Alice)
				if err != nil || len(infos) != 1 || infos[0].ID != "s" || infos[0].State != sessions.Died || infos[0].Executions != 1 || infos[0].Lost == "" {
					t.Errorf("%+v, %v", infos, err)
				}
				if others, err := m.List(t.Context(), sessions.Bob); err != nil || len(others) != 0 {
					t.Errorf("bob sees %+v, %v", others, err)
				}
				if e, _ := runCell(t, m, "s", "y"); e.Generation() != 2 || !strings.Contains(e.Preamble(), "(generation 1)") {
					t.Errorf("generation %d is told %q", e.Generation(), e.Preamble())
				}
			})
		})
	}
}

// A guest leaves what another process has left to that one, until somebody asks for it by name.
func TestListOfAGuestTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "s", "x = 1")
		l.kill()
		m = l.begin(func(c *sessions.Config) { c.Guest = true })
		if infos, err := m.List(t.Context(), sessions.Alice); err != nil || len(infos) != 0 {
			t.Errorf("a guest lists %+v, %v", infos, err)
		}
		if info, err := idleSoon(t, m, "s"); err != nil || info.State != sessions.Idle {
			t.Errorf("asked by name: %+v, %v", info, err)
		}
	})
}

// What a person did is told to a model that comes back after the server was killed, too: variables may be his.
func TestVisitedBeforeTheServerWasKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		for _, caller := range []string{"claude", sessions.Person} {
			r := sessions.Python("s", "x")
			r.Caller = caller
			sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, r))
		}
		l.kill()
		m, _ = l.start()
		r := sessions.Python("s", "x")
		r.Caller = "claude"
		e := sessions.StartCell(t, m, sessions.Alice, r)
		sessions.WaitFor(t, e)
		if told := e.Preamble(); !strings.Contains(told, "a person ran cell 2 here") || e.Generation() != 1 {
			t.Errorf("on generation %d it is told %q", e.Generation(), told)
		}
	})
}

// A kernel that was culled before the server ended is called so by the next server, and not one that died.
func TestCulledBeforeTheServerEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		unused := func(cfg *sessions.Config) { cfg.IdleTimeout = 30 * time.Minute }
		m, _ := l.start(unused)
		runCell(t, m, "unused", "x = 1")
		time.Sleep(time.Hour)
		if infos, err := m.List(t.Context(), sessions.Alice); err != nil || len(infos) != 1 || infos[0].State != sessions.Culled {
			t.Fatalf("it is not culled: %+v, %v", infos, err)
		}
		l.kill()
		m, _ = l.start(unused)
		if infos, err := m.List(t.Context(), sessions.Alice); err != nil || len(infos) != 1 || infos[0].State != sessions.Culled || !strings.Contains(infos[0].Lost, "it was stopped because no cell had run") {
			t.Errorf("after a restart it is %+v, %v", infos, err)
		}
		if e, _ := runCell(t, m, "unused", "on"); e.Generation() != 2 {
			t.Errorf("it goes on in generation %d", e.Generation())
		}
	})
}
