package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

func TestDeathEndsTheCellAndIsToldToTheNext(t *testing.T) {
	for _, oom := range []bool{false, true} {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		code, cause := "die", "the kernel was killed by SIGKILL"
		if oom {
			code, cause = "die oom", "the kernel ran out of memory (limit 2 GiB) and was killed"
		}
		_, r := execute(t, m, alice, "s", code)
		if r.Status != kernels.StatusDied || r.Death.Cause != cause {
			t.Errorf("result %v %+v", r.Status, r.Death)
		}
		e, r := execute(t, m, alice, "s", "x")
		if r.Status != kernels.StatusOK || e.Generation() != 2 || p.launched.Load() != 2 {
			t.Errorf("next cell: %v, generation %d", r.Status, e.Generation())
		}
		for _, w := range []string{cause, "generation 1", "UTC", "variables", "lost", "files in the workspace", "generation 2"} {
			if !strings.Contains(e.Preamble(), w) {
				t.Errorf("preamble %q does not say %q", e.Preamble(), w)
			}
		}
		if p.specs[0].Workspace != p.specs[1].Workspace {
			t.Error("the new kernel has another workspace")
		}
		if e, _ := execute(t, m, alice, "s", "y"); e.Preamble() != "" {
			t.Errorf("told twice: %q", e.Preamble())
		}
	}
}

func TestDeathOfAnIdleKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		p.last().die(kernels.Death{Cause: "the kernel exited with status 3"})
		synctest.Wait()
		if info, _ := m.Get(t.Context(), alice, "s"); info.State != Died || p.live.Load() != 0 {
			t.Errorf("state %v, %d kernels live", info.State, p.live.Load())
		}
		time.Sleep(time.Minute)
		e, _ := execute(t, m, alice, "s", "y")
		if !strings.Contains(e.Preamble(), "exited with status 3") || e.Generation() != 2 {
			t.Errorf("generation %d, preamble %q", e.Generation(), e.Preamble())
		}
	})
}

func TestKernelThatDoesNotComeUp(t *testing.T) {
	for name, fail := range map[string]func(*fakeProvisioner, *error){
		"launch": func(p *fakeProvisioner, err *error) { p.launchErr.Store(err) },
		"ready":  func(p *fakeProvisioner, err *error) { p.readyErr.Store(err) },
	} {
		t.Run(name, func(t *testing.T) {
			p := &fakeProvisioner{}
			m := newTestManager(t, p)
			var broken error = fault.New(fault.Unavailable, "there is no engine").WithHint("start the engine")
			fail(p, &broken)
			first, second := start(t, m, alice, python("s", "x")), start(t, m, alice, python("s", "y"))
			_, err := first.Wait(t.Context())
			if fault.KindOf(err) != fault.Unavailable || fault.Hint(err) != "start the engine" ||
				!strings.Contains(err.Error(), "there is no engine") {
				t.Errorf("got %v", fault.Text(err))
			}
			if got := strings.Contains(err.Error(), "fake log: last"); got != (name == "ready") {
				t.Errorf("logs in %q", err)
			}
			if _, err := second.Wait(t.Context()); err == nil {
				t.Error("the second cell ran")
			}
			for _, err := range first.Outputs(t.Context()) {
				if err == nil {
					t.Error("output of a cell that never ran")
				}
			}
			fail(p, nil)
			if _, r := execute(t, m, alice, "s", "z"); r.Status != kernels.StatusOK {
				t.Errorf("after it was mended: %v", r.Status)
			}
		})
	}
}

func TestRestartThatFailsLeavesTheSessionToTryAgain(t *testing.T) {
	p := &fakeProvisioner{}
	m := newTestManager(t, p)
	execute(t, m, alice, "s", "x")
	broken := errors.New("broken")
	p.readyErr.Store(&broken)
	if _, err := m.Restart(t.Context(), alice, "s"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v", err)
	}
	p.readyErr.Store(nil)
	e, _ := execute(t, m, alice, "s", "y")
	if e.Number() != 2 || e.Generation() != 3 {
		t.Errorf("number %d, generation %d", e.Number(), e.Generation())
	}
}

func TestStartTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{launchTime: time.Hour})
		defer m.Shutdown(context.Background())
		_, err := start(t, m, alice, python("s", "x")).Wait(t.Context())
		if fault.KindOf(err) != fault.Timeout || !strings.Contains(err.Error(), "90 seconds") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRestart(t *testing.T) {
	for _, inPlace := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvisioner{}
			if !inPlace {
				p.restartErr = errors.New("the shim does not answer")
			}
			m := newTestManager(t, p)
			defer m.Shutdown(context.Background())
			running, queued := start(t, m, alice, python("s", "stubborn")), start(t, m, alice, python("s", "y"))
			synctest.Wait()
			info, err := m.Restart(t.Context(), alice, "s")
			if err != nil || info.Generation < 2 {
				t.Fatalf("%+v %v", info, err)
			}
			if r := wait(t, running); r.Status != kernels.StatusDied || !r.Death.Asked || !strings.Contains(r.Death.Cause, "restarted on request") {
				t.Errorf("running cell: %v %+v", r.Status, r.Death)
			} else if !r.Restarted || !r.Stopped() || r.Interrupted() {
				t.Errorf("it is not told that the restart ended the running cell: %+v", r)
			}
			if r := wait(t, queued); r.Status != kernels.StatusOK || queued.Generation() != 2 || queued.Preamble() == "" {
				t.Errorf("queued cell: %v in generation %d, %q", r.Status, queued.Generation(), queued.Preamble())
			}
			if want := map[bool]int64{true: 1, false: 2}[inPlace]; p.launched.Load() != want {
				t.Errorf("%d launches, want %d", p.launched.Load(), want)
			}
			if info, err := m.Restart(t.Context(), alice, "s"); err != nil || info.Generation != 3 || info.State != Idle {
				t.Errorf("idle: %+v %v", info, err)
			}
		})
	}
}

func TestRestartDuringStartStartsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		e := start(t, m, alice, python("s", "x"))
		synctest.Wait()
		if _, err := m.Restart(t.Context(), alice, "s"); err != nil {
			t.Fatal(err)
		}
		if r := wait(t, e); r.Status != kernels.StatusOK || e.Generation() != 1 || p.last().restarts != 0 || p.launched.Load() != 1 {
			t.Errorf("%v, generation %d, %d restarts, %d launches", r.Status, e.Generation(), p.last().restarts, p.launched.Load())
		}
	})
}

func TestInterruptLadder(t *testing.T) {
	for _, tt := range []struct {
		code, rung string
		kept       bool
		status     kernels.Status
		took       time.Duration
	}{
		{"sleep 1h", RungInterrupt, true, kernels.StatusError, 0},
		{"children", RungKillChildren, true, kernels.StatusOK, 5 * time.Second},
		{"stubborn", RungRestart, false, kernels.StatusDied, 10 * time.Second},
	} {
		for _, by := range []string{"interrupt", "timeout", "cancel"} {
			t.Run(tt.code+" by "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newTestManager(t, &fakeProvisioner{})
					defer m.Shutdown(context.Background())
					r := python("s", tt.code)
					if by == "timeout" {
						r.Timeout = time.Minute
					}
					e := start(t, m, alice, r)
					synctest.Wait()
					began, want := time.Now(), tt.took
					switch by {
					case "interrupt":
						report, err := m.Interrupt(t.Context(), alice, "s")
						if err != nil || report != (InterruptReport{Ran: true, Rung: tt.rung, VariablesKept: tt.kept}) {
							t.Errorf("report %+v %v", report, err)
						}
					case "cancel":
						e.Cancel()
					case "timeout":
						want += time.Minute
					}
					res := wait(t, e)
					if res.Status != tt.status || res.Interrupt.Rung != tt.rung || res.Interrupt.VariablesKept != tt.kept ||
						res.TimedOut != (by == "timeout") || res.Cancelled != (by == "cancel") {
						t.Errorf("result %+v", res)
					}
					if !res.Interrupted() {
						t.Errorf("it was not interrupted: %+v", res)
					}
					if took := time.Since(began); took != want || res.Duration != want {
						t.Errorf("took %v (it says %v), want %v", took, res.Duration, want)
					}
					next, res := execute(t, m, alice, "s", "x")
					if res.Status != kernels.StatusOK || (next.Preamble() == "") != tt.kept {
						t.Errorf("next cell: %v, preamble %q", res.Status, next.Preamble())
					}
				})
			})
		}
	}
}

// A session whose cell only a restart could stop has a kernel again soon, as after a restart on request, also where that is another one;
// at no time is it said that its kernel had died.
func TestKernelIsThereAgainAfterAnInterrupt(t *testing.T) {
	for name, tt := range map[string]struct {
		pool     int
		err      error
		launches int64
	}{
		"in place":      {0, nil, 1},
		"not in place":  {0, errors.New("the shim does not answer"), 2},
		"from the pool": {1, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProvisioner{restartErr: tt.err, launchTime: time.Second}
				m := pooledManager(t, p, tt.pool)
				defer m.Shutdown(context.Background())
				e := start(t, m, alice, python("s", "stubborn"))
				time.Sleep(time.Minute)
				launches := p.launched.Load()
				if report, err := m.Interrupt(t.Context(), alice, "s"); err != nil || report.Rung != RungRestart {
					t.Fatalf("report %+v %v", report, err)
				}
				info, err := m.Get(t.Context(), alice, "s")
				if err != nil || info.State == Died || info.Lost != "" {
					t.Errorf("at once: %+v %v", info, err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if info, _ = m.Get(t.Context(), alice, "s"); info.State != Idle || info.Generation != 2 || e.Generation() != 1 {
					t.Errorf("soon: %+v", info)
				}
				if launched := p.launched.Load() - launches + 1; launched != tt.launches {
					t.Errorf("%d launches, want %d", launched, tt.launches)
				}
				if next, r := execute(t, m, alice, "s", "x"); r.Status != kernels.StatusOK || !strings.Contains(next.Preamble(), "did not stop") {
					t.Errorf("next cell: %v, preamble %q", r.Status, next.Preamble())
				}
			})
		})
	}
}

// A session for one cell needs no other kernel when that cell has been stopped.
func TestNoKernelComesAfterTheOnlyCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{restartErr: errors.New("the shim does not answer")}
		m := newTestManager(t, p, func(c *Config) { c.Profiles = map[string]Profile{"once": {Once: true}} })
		defer m.Shutdown(context.Background())
		e := start(t, m, alice, Request{Language: "python", Profile: "once", Code: "stubborn", Timeout: time.Minute})
		if r := wait(t, e); !r.TimedOut || r.Interrupt.Rung != RungRestart {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if launched, live := p.launched.Load(), p.live.Load(); launched != 1 || live != 0 {
			t.Errorf("%d launches, %d live", launched, live)
		}
	})
}

// A cell that waits for the connection to its kernel can be stopped like any other, and costs the kernel nothing.
func TestCellThatCannotBeSentIsStopped(t *testing.T) {
	for by, kind := range map[string]fault.Kind{
		"timeout": fault.Timeout, "cancel": fault.Cancelled, "interrupt": fault.Unavailable, "restart": -1, "close": -1,
	} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProvisioner{}
				m := newTestManager(t, p)
				defer m.Shutdown(context.Background())
				execute(t, m, alice, "s", "x")
				p.unplugged.Store(true)
				r := python("s", "y")
				r.Timeout = time.Minute
				e := start(t, m, alice, r)
				synctest.Wait()
				began, want := time.Now(), time.Duration(0)
				switch by {
				case "timeout":
					want = time.Minute
				case "cancel":
					e.Cancel()
				case "interrupt":
					if report, err := m.Interrupt(t.Context(), alice, "s"); err != nil || report != (InterruptReport{Ran: true, VariablesKept: true}) {
						t.Errorf("report %+v %v", report, err)
					}
				case "restart":
					if _, err := m.Restart(t.Context(), alice, "s"); err != nil {
						t.Error(err)
					}
					want = 5 * time.Second // for a kernel to tell how its cell ended
				case "close":
					if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
						t.Error(err)
					}
				}
				res, err := e.Wait(t.Context())
				if took := time.Since(began); took != want {
					t.Errorf("took %v, want %v", took, want)
				}
				if kind < 0 && (err != nil || res.Status != kernels.StatusDied) || kind >= 0 && fault.KindOf(err) != kind {
					t.Errorf("%+v, %v", res, err)
				}
				p.unplugged.Store(false)
				if next, _ := execute(t, m, alice, "s", "z"); kind >= 0 && next.Generation() != 1 {
					t.Errorf("the next cell ran in generation %d", next.Generation())
				}
			})
		})
	}
}

// Who interrupts a cell that has ended meanwhile does not stop the one that runs by now.
func TestInterruptIsForOneCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		running := start(t, m, alice, python("s", "sleep 1h"))
		synctest.Wait()
		_, err := m.InterruptCell(t.Context(), alice, "s", 1, "")
		if phase, _ := running.Phase(); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "cell 2") || phase != PhaseRunning {
			t.Errorf("%v, and cell 2 is %s", err, phase)
		}
		if r, err := m.InterruptCell(t.Context(), alice, "s", 2, ""); err != nil || !r.Ran {
			t.Errorf("%+v %v", r, err)
		}
		wait(t, running)
	})
}

func TestInterruptOfAnIdleSession(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	execute(t, m, alice, "s", "x")
	if r, err := m.Interrupt(t.Context(), alice, "s"); err != nil || r.Ran || !r.VariablesKept {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := m.Interrupt(t.Context(), bob, "s"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another's session: %v", err)
	}
}

// What is cancelled while it is queued never runs.
func TestCancelledInTheQueueNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Minute}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		starting := start(t, m, alice, python("s", "never 1"))
		synctest.Wait()
		starting.Cancel()
		if r, err := starting.Wait(t.Context()); fault.KindOf(err) != fault.Cancelled || !r.Cancelled {
			t.Errorf("while starting: %+v %v", r, err)
		}
		first, second, third := start(t, m, alice, python("s", "sleep 10s")), start(t, m, alice, python("s", "never 2")), start(t, m, alice, python("s", "x"))
		second.Cancel()
		wait(t, first)
		wait(t, third)
		second.Cancel()
		for _, c := range p.last().cells {
			if strings.HasPrefix(c.code, "never") {
				t.Errorf("%q ran", c.code)
			}
		}
	})
}

func TestCloseCutsThroughTheLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		e := start(t, m, alice, python("s", "stubborn"))
		synctest.Wait()
		e.Cancel()
		synctest.Wait()
		began := time.Now()
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		wait(t, e)
	})
}

func TestLateOutputGoesWithTheNextResult(t *testing.T) {
	p := &fakeProvisioner{}
	m := newTestManager(t, p)
	first, _ := execute(t, m, alice, "s", "x")
	c := p.last()
	c.late(kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: "from a thread\n"}, c.cells[0].id)
	c.late(kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: "of nobody\n"}, "unknown")
	second, _ := execute(t, m, alice, "s", "y")
	late := second.Late()
	if len(late) != 1 || late[0].Number != first.Number() || len(late[0].Outputs) != 1 || late[0].Outputs[0].Text != "from a thread\n" {
		t.Errorf("late %+v", late)
	}
	if got := text(t, first); got != "x" {
		t.Errorf("the first cell's own outputs are %q", got)
	}
	if third, _ := execute(t, m, alice, "s", "z"); len(third.Late()) != 0 {
		t.Errorf("told twice: %+v", third.Late())
	}
}

// What many cells go on to produce together is bounded as what they have produced themselves.
func TestLateOutputOfAllCellsIsBounded(t *testing.T) {
	const limit, cells = 1 << 20, 40
	p := &fakeProvisioner{}
	m := newTestManager(t, p, func(c *Config) { c.RecordBytes = limit })
	for i := range cells {
		execute(t, m, alice, "s", fmt.Sprint("cell ", i))
	}
	s, err := m.find(t.Context(), alice, "s")
	if err != nil {
		t.Fatal(err)
	}
	line := kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: strings.Repeat("x", 10<<10)}
	c := p.last()
	for range 100 {
		for _, one := range c.cells {
			c.late(line, one.id)
		}
		s.mu.Lock()
		var held int64
		for _, r := range s.records {
			held += r.size()
		}
		s.mu.Unlock()
		if held > limit+limit/4 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if kept := m.Records(alice, "s"); kept < 1 || kept == cells {
		t.Errorf("%d cells are kept", kept)
	}
	next, _ := execute(t, m, alice, "s", "next")
	if late := next.Late(); len(late) == 0 || late[len(late)-1].Number != cells {
		t.Errorf("the last cell's late output is not told: %d cells are", len(late))
	}
}

func TestStatesMoveForwardOnly(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	s := &session{manager: m, log: m.cfg.Logger}
	for _, step := range []struct {
		to, want   State
		generation int
	}{
		{Idle, "", 0}, {Starting, Starting, 1}, {Busy, Starting, 1}, {Idle, Idle, 1}, {Busy, Busy, 1}, {Idle, Idle, 1},
		{Starting, Idle, 1}, {Restarting, Restarting, 1}, {Idle, Restarting, 1}, {Starting, Starting, 2}, {Died, Died, 2},
		{Idle, Died, 2}, {Starting, Starting, 3}, {Closed, Closed, 3}, {Starting, Closed, 3}, {Closed, Closed, 3},
	} {
		s.transition(step.to)
		if s.state != step.want || s.generation != step.generation {
			t.Errorf("after a step to %q: %q in generation %d, want %q in %d", step.to, s.state, s.generation, step.want, step.generation)
		}
	}
}
