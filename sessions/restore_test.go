package sessions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// restoring runs a test with a session "s", once with what it did in a store and once in memory only.
func restoring(t *testing.T, test func(t *testing.T, m *sessions.Manager, run func(code string) *sessions.Execution)) {
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored %v", stored), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) {
					if stored {
						c.Store = storetest.NewMemory()
					}
				})
				defer m.Shutdown(context.Background())
				test(t, m, func(code string) *sessions.Execution {
					t.Helper()
					r := sessions.Python("s", code)
					r.Attended = strings.HasPrefix(code, "ask")
					e := sessions.StartCell(t, m, sessions.Alice, r)
					if r.Attended {
						synctest.Wait()
						e.Answer(e.Prompt().ID, "answer")
					}
					sessions.WaitFor(t, e)
					return e
				})
			})
		})
	}
}

// restore is RestoreSession that must not be refused.
func restore(t *testing.T, m *sessions.Manager, opts sessions.RestoreOptions) sessions.RestoreReport {
	t.Helper()
	report, err := m.RestoreSession(t.Context(), sessions.Alice, "s", opts)
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	return report
}

// steps writes a report's cells short: "1>4 ok", "2 skipped", "3>5 error".
func steps(r sessions.RestoreReport) string {
	var all []string
	for _, c := range r.Cells {
		step := fmt.Sprint(c.Original)
		if c.Number > 0 {
			step += fmt.Sprintf(">%d", c.Number)
		}
		if c.Skipped != "" {
			all = append(all, step+" skipped")
			continue
		}
		all = append(all, step+" "+string(c.Result.Status))
	}
	return strings.Join(all, ", ")
}

func TestRestoreRunsTheSuccessfulCellsOfTheLostKernelAgain(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		run("a")
		run("fail")
		run("ask name")
		run("b")
		run("die")
		r := restore(t, m, sessions.RestoreOptions{})
		if got := steps(r); got != "1>6 ok, 3 skipped, 4>7 ok" || r.Generation != 2 || r.From != 1 || r.Stopped != "" || r.Left != 0 {
			t.Errorf("%s; %+v", got, r)
		}
		if !strings.Contains(r.Preamble, "SIGKILL") || !strings.Contains(r.Preamble, "earlier cells are run again") || strings.Contains(r.Preamble, "restore_session") {
			t.Errorf("preamble %q", r.Preamble)
		}
		infos, err := m.Executions(t.Context(), sessions.Alice, "s", 3)
		if err != nil || len(infos) != 3 || infos[0].Restores != 0 || infos[1].Restores != 1 || infos[2].Restores != 4 || infos[2].Code != "b" {
			t.Errorf("the history has %+v, %v", infos, err)
		}
		if e := run("c"); e.Preamble() != "" || e.Generation() != 2 {
			t.Errorf("the next cell: %q in generation %d", e.Preamble(), e.Generation())
		}
		if again := restore(t, m, sessions.RestoreOptions{}); again.Done != 2 || steps(again) != "3 skipped" {
			t.Errorf("again: %s, %+v", steps(again), again)
		}
		run("die") // what was restored is lost, and what came after it
		if r := restore(t, m, sessions.RestoreOptions{}); steps(r) != "1>10 ok, 4>11 ok, 8>12 ok" || r.From != 2 || r.Generation != 3 || r.Earlier != 1 {
			t.Errorf("the second generation: %s, %+v", steps(r), r)
		}
	})
}

func TestRestoreStopsAtTheFirstFailureAndGoesOnThere(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		run("a")
		run("sleep 5m")
		run("b")
		run("die")
		r := restore(t, m, sessions.RestoreOptions{Timeout: 2 * time.Minute})
		if steps(r) != "1>5 ok, 2>6 error" || r.Left != 1 || !strings.Contains(r.Stopped, "the time of 2 minutes") || r.Duration != 2*time.Minute {
			t.Errorf("%s, %+v", steps(r), r)
		}
		if r := restore(t, m, sessions.RestoreOptions{}); steps(r) != "2>7 ok, 3>8 ok" || r.Done != 1 || r.Stopped != "" || r.Preamble != "" {
			t.Errorf("%s, %+v", steps(r), r)
		}
	})
}

func TestRestoreEndsWithItsCaller(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		run("sleep 5m")
		run("b")
		run("die")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := m.RestoreSession(ctx, sessions.Alice, "s", sessions.RestoreOptions{})
		if err != nil || steps(r) != "1>4 error" || !r.Cells[0].Result.Cancelled || r.Left != 1 || r.Stopped == "" || r.Duration != time.Minute {
			t.Errorf("%s, %+v, %v", steps(r), r, err)
		}
	})
}

// Who leaves has no further cell sent; the one that runs ends as it would have.
func TestRestoreLeavesTheCellThatRuns(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		run("sleep 5m")
		run("b")
		run("die")
		leave, left := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { left(fault.New(fault.Unavailable, "gone")) })
		var begun *sessions.Execution
		opts := sessions.RestoreOptions{Leave: leave, Began: func(e *sessions.Execution) { begun = e }}
		if r := restore(t, m, opts); steps(r) != "1>4 " || r.Left != 1 || r.Stopped != "gone" || r.Duration != time.Minute {
			t.Errorf("%s, %+v", steps(r), r)
		}
		if got, err := begun.Wait(t.Context()); err != nil || got.Status != kernels.StatusOK || got.Interrupt.Ran {
			t.Errorf("the cell that ran: %+v, %v", got, err)
		}
		if r := restore(t, m, opts); len(r.Cells) != 0 || r.Left != 1 || r.Done != 1 || r.Stopped != "gone" {
			t.Errorf("after it: %+v", r)
		}
	})
}

func TestRestoreTakesSeveralGenerationsWhenAsked(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		run("a")
		run("die")
		run("b")
		if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
			t.Fatal(err)
		}
		if r := restore(t, m, sessions.RestoreOptions{}); steps(r) != "3>4 ok" || r.From != 2 || r.Generation != 3 || r.Earlier != 1 {
			t.Errorf("%s, %+v", steps(r), r)
		}
		if r := restore(t, m, sessions.RestoreOptions{Generation: 1}); steps(r) != "1>5 ok" || r.Done != 1 || r.From != 1 || r.To != 1 || r.Earlier != 0 {
			t.Errorf("%s, %+v", steps(r), r)
		}
	})
}

func TestRestoreAfterAClose(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		run("a")
		if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil {
			t.Fatal(err)
		}
		r, err := m.RestoreSession(t.Context(), sessions.Alice, "s", sessions.RestoreOptions{})
		if m.Config().Store == nil {
			if fault.KindOf(err) != fault.NotFound {
				t.Errorf("nothing is known of it: %+v, %v", r, err)
			}
			return
		}
		if err != nil || steps(r) != "1>2 ok" || !strings.Contains(r.Preamble, "was closed") {
			t.Errorf("%s, %+v, %v", steps(r), r, err)
		}
	})
}

func TestRestoreIsRefusedWhereNothingIsLost(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		refused := func(opts sessions.RestoreOptions, kind fault.Kind, word string) {
			t.Helper()
			r, err := m.RestoreSession(t.Context(), sessions.Alice, "s", opts)
			if fault.KindOf(err) != kind || !strings.Contains(err.Error(), word) {
				t.Errorf("%+v, %v; want %v that says %q", r, err, kind, word)
			}
		}
		refused(sessions.RestoreOptions{}, fault.NotFound, "there is no session")
		run("a")
		refused(sessions.RestoreOptions{}, fault.Conflict, "generation 1, lives")
		refused(sessions.RestoreOptions{Generation: 1}, fault.Conflict, "generation 1 of session \"s\" lives")
		run("die")
		refused(sessions.RestoreOptions{Generation: 7}, fault.NotFound, "no cell that ran successfully")
		refused(sessions.RestoreOptions{Timeout: 100 * time.Hour}, fault.Invalid, "timeout_seconds")
		if _, err := m.RestoreSession(t.Context(), sessions.Bob, "s", sessions.RestoreOptions{}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("another's session: %v", err)
		}
	})
}

func TestRestoreStopsWhenTheNewKernelDies(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		for range 3 {
			run("sleep 1m")
		}
		run("die")
		var began []*sessions.Execution
		r := restore(t, m, sessions.RestoreOptions{Began: func(e *sessions.Execution) {
			if began = append(began, e); len(began) == 2 {
				synctest.Wait()
				if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
					t.Error(err)
				}
			}
		}})
		if len(r.Cells) != 2 || r.Cells[1].Result.Status != kernels.StatusDied || r.Left != 1 || !strings.Contains(r.Stopped, "restarted on request") {
			t.Errorf("%s, %+v", steps(r), r)
		}
	})
}

// restore_session is advised where something can be restored, and not when a person has done it.
func TestRestoreIsAdvisedWhereItHelps(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		told := func(advised bool, words string) {
			t.Helper()
			said := run("x").Preamble()
			if strings.Contains(said, "restore_session") != advised || !strings.Contains(said, words) {
				t.Errorf("it is told %q, advised %v", said, advised)
			}
		}
		run("die")
		told(false, "define again what you need.")
		run("die")
		told(true, "or let restore_session run the earlier cells again.")
		run("die")
		if r := restore(t, m, sessions.RestoreOptions{Caller: sessions.Person, Generation: 2}); steps(r) != "2>6 ok, 4>7 ok" {
			t.Errorf("restored: %s", steps(r))
		}
		told(false, "A person has run its earlier cells again since, as cells 6–7, on a new kernel, generation 4.")
	})
}

// Where a person has restored a part only, because a cell was skipped or one stopped it, that is said, and the rest is advised.
func TestRestoreOfAPartIsToldAsThat(t *testing.T) {
	for lost, want := range map[string]string{
		"ask name": "A person has run 2 of 3 earlier cells again since, as cells 5–6, on a new kernel, generation 2: " +
			"define again what else you need, or let restore_session run the rest.",
		"sleep 5m": "A person has run 1 of 3 earlier cells again since, as cell 5, on a new kernel, generation 2: ",
	} {
		restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
			run("a")
			run(lost)
			run("b")
			run("die")
			restore(t, m, sessions.RestoreOptions{Caller: sessions.Person, Timeout: time.Minute})
			if said := run("x").Preamble(); !strings.Contains(said, want) || !strings.Contains(said, "restore_session") {
				t.Errorf("%s: it is told %q", lost, said)
			}
		})
	}
}

// A restoration that a second one completes is told as whole.
func TestRestoreInTwoPartsIsToldAsWhole(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(string) *sessions.Execution) {
		run("a")
		run("sleep 5m")
		run("die")
		for _, limit := range []time.Duration{time.Minute, 10 * time.Minute} {
			restore(t, m, sessions.RestoreOptions{Caller: sessions.Person, Timeout: limit})
		}
		if said := run("x").Preamble(); !strings.Contains(said, "A person has run its earlier cells again since, as cells 4 and 6, on") {
			t.Errorf("it is told %q", said)
		}
	})
}

// What was run again stays so for the next server: it is not run once more.
func TestRestoredCellsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "s", "x = 1")
		if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
			t.Fatal(err)
		}
		if got := steps(restore(t, m, sessions.RestoreOptions{})); got != "1>2 ok" {
			t.Errorf("restored: %s", got)
		}
		l.leave(m)
		m, _ = l.start()
		defer m.Shutdown(context.Background())
		if r := restore(t, m, sessions.RestoreOptions{}); len(r.Cells) != 0 || r.Done != 1 {
			t.Errorf("restored again: %s, %d done before", steps(r), r.Done)
		}
	})
}

// Two calls do not run the cells twice: the second is told to wait.
func TestRestoreWhileAnotherCallDoes(t *testing.T) {
	restoring(t, func(t *testing.T, m *sessions.Manager, run func(code string) *sessions.Execution) {
		run("sleep 10s")
		run("die")
		first := make(chan sessions.RestoreReport)
		go func() { first <- restore(t, m, sessions.RestoreOptions{}) }()
		time.Sleep(time.Second)
		if _, err := m.RestoreSession(t.Context(), sessions.Alice, "s", sessions.RestoreOptions{}); fault.KindOf(err) != fault.Conflict ||
			!strings.Contains(err.Error(), "another call") {
			t.Errorf("the second call: %v", err)
		}
		if r := <-first; steps(r) != "1>3 ok" {
			t.Errorf("the first ran %s", steps(r))
		}
		if r := restore(t, m, sessions.RestoreOptions{}); len(r.Cells) != 0 || r.Done != 1 {
			t.Errorf("one after it: %+v", r)
		}
	})
}
