package sessions

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
)

// refused fails the test unless an error is Busy and says all of the words, with its hint.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if fault.KindOf(err) != fault.Busy {
		t.Errorf("got %v", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(fault.Text(err), word) {
			t.Errorf("it does not say %q: %s", word, fault.Text(err))
		}
	}
}

func TestSessionsOfAnOwnerAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p, func(c *Config) { c.MaxSessionsPerOwner, c.IdleTimeout = 3, 30*time.Minute })
		defer m.Shutdown(context.Background())
		for _, id := range []string{"a", "b", "c"} {
			execute(t, m, alice, id, "x")
			time.Sleep(time.Second)
		}
		execute(t, m, alice, "a", "x")
		long := python("b", "sleep 2h")
		long.Timeout = time.Hour
		busy := start(t, m, alice, long)
		_, err := m.Execute(t.Context(), alice, python("d", "x"))
		refused(t, err, "you may have no more sessions", "3 of 3", "close_session", "idle: c, a")
		_, err = m.Execute(t.Context(), alice, python("", "x"))
		refused(t, err, "3 of 3")
		execute(t, m, alice, "c", "x") // those that are there go on
		execute(t, m, bob, "d", "x")   // and so do others
		if err := m.Close(t.Context(), alice, "c", CloseOptions{}); err != nil {
			t.Fatal(err)
		}
		execute(t, m, alice, "d", "x")
		time.Sleep(30 * time.Minute)
		synctest.Wait() // a and d are culled: they need no kernel
		execute(t, m, alice, "e", "x")
		execute(t, m, alice, "f", "x")
		_, err = m.Execute(t.Context(), alice, python("a", "x"))
		refused(t, err, "3 of 3", "idle: e, f")
		_, err = m.Restart(t.Context(), alice, "a")
		refused(t, err, "3 of 3")
		execute(t, m, alice, "e", "die")
		execute(t, m, alice, "a", "x") // e has no kernel now
		_, err = m.Restart(t.Context(), alice, "d")
		refused(t, err, "3 of 3")
		busy.Cancel()
		wait(t, busy)
		synctest.Wait()
		if n := p.live.Load(); n != 3 {
			t.Errorf("%d kernels live", n) // b, f, a; bob's is culled
		}
	})
}

// Many at once do not slip through together, neither into new sessions nor into those that were culled.
func TestLimitOfSessionsHoldsForManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := newTestManager(t, p, func(c *Config) { c.MaxSessions = 4 })
		defer m.Shutdown(context.Background())
		for round := range 2 {
			accepted := make(chan *Execution, 40)
			for i := range 40 {
				go func() {
					e, err := m.Execute(t.Context(), Owner{Subject: fmt.Sprint(i % 7)}, python(fmt.Sprint("s", i), "x"))
					if err != nil {
						refused(t, err, "the server may have no more", "4 of 4", "close_session", "try again later")
					}
					accepted <- e
				}()
			}
			synctest.Wait()
			n := 0
			for range 40 {
				if e := <-accepted; e != nil {
					n++
					wait(t, e)
				}
			}
			if n != 4 || p.live.Load() != 4 {
				t.Errorf("round %d: %d were accepted, %d kernels live", round, n, p.live.Load())
			}
			time.Sleep(time.Hour) // all are culled
		}
	})
}

func TestWaitingCellsAreLimitedInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.MaxWaiting = 3 })
		defer m.Shutdown(context.Background())
		start(t, m, alice, python("a", "sleep 1h"))
		start(t, m, bob, python("b", "sleep 1h"))
		synctest.Wait()
		waiting := []*Execution{start(t, m, alice, python("a", "x")), start(t, m, bob, python("b", "x")), start(t, m, bob, python("b", "x"))}
		_, err := m.Execute(t.Context(), alice, python("a", "x"))
		refused(t, err, "3 cells wait", "list_sessions")
		_, err = m.Execute(t.Context(), alice, python("new", "x"))
		refused(t, err, "3 cells wait")
		if _, err := m.Get(t.Context(), alice, "new"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a session was made in vain: %v", err)
		}
		waiting[0].Cancel()
		if err := m.Close(t.Context(), bob, "b", CloseOptions{}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			start(t, m, alice, python("a", "x"))
		}
		_, err = m.Execute(t.Context(), alice, python("a", "x"))
		refused(t, err, "3 cells wait")
	})
}

func TestQueueWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.MaxQueue = -1 })
		defer m.Shutdown(context.Background())
		for range 100 {
			start(t, m, alice, python("a", "sleep 1s"))
		}
	})
}

func TestRunningCellsAreLimitedInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.MaxRunning = 2 })
		defer m.Shutdown(context.Background())
		var cells []*Execution
		for i := range 6 {
			r := python(fmt.Sprint("s", i), "sleep 10m")
			r.Timeout = time.Hour
			cells = append(cells, start(t, m, alice, r))
			synctest.Wait()
		}
		for i, e := range cells {
			phase, _ := e.Phase()
			if want := i < 2; (phase == PhaseRunning) != want || e.Crowded() == want || e.Info().Crowded == want || e.Position() != 0 {
				t.Errorf("cell %d: %s, crowded %v, position %d", i, phase, e.Crowded(), e.Position())
			}
		}
		if info, _ := m.Get(t.Context(), alice, "s3"); info.State != Idle || info.Queue != 1 || !info.Ends.At.After(time.Now().Add(23*time.Hour)) {
			t.Errorf("a session whose cell waits: %+v", info)
		}
		cells[5].Cancel()
		if report, err := m.Interrupt(t.Context(), alice, "s4"); err != nil || report.Ran {
			t.Errorf("%+v, %v", report, err)
		}
		if _, err := m.Restart(t.Context(), alice, "s3"); err != nil { // it is not stuck while its cell waits
			t.Error(err)
		}
		began := time.Now()
		for _, e := range cells[:5] {
			wait(t, e)
		}
		if took := time.Since(began); took != 30*time.Minute {
			t.Errorf("five cells, two at a time, took %v", took)
		}
		execute(t, m, alice, "s5", "x")
	})
}

func TestNoNewKernelWhereMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		host := fstest.MapFS{}
		m.memory = &hostMemory{proc: host}
		free := func(mb int) {
			host["meminfo"] = &fstest.MapFile{Data: fmt.Appendf(nil, "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: %d kB\n", mb<<10)}
		}
		free(600)
		execute(t, m, alice, "a", "x")
		free(500)
		_, err := m.Execute(t.Context(), alice, python("b", "x"))
		refused(t, err, "short of memory", "500 MiB are free, 512 MiB must be", "idle: a")
		execute(t, m, alice, "a", "x")
		delete(host, "meminfo") // not known
		execute(t, m, alice, "b", "x")
		host["pressure/memory"] = psi(42.5, 9)
		_, err = m.Execute(t.Context(), alice, python("c", "x"))
		refused(t, err, "short of memory", "stood still for it for 42.5 % of the last 10 s", "idle: a, b", "try again in a minute")
		execute(t, m, alice, "a", "x")
		host["pressure/memory"] = psi(0, 0)
		execute(t, m, alice, "c", "x")
	})
}

// Sessions without a kernel cost little, but not nothing.
func TestVeryManyDormantSessionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		for i := range maxDormant + 5 {
			execute(t, m, alice, fmt.Sprint("s", i), "die")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		infos, err := m.List(t.Context(), alice)
		if err != nil || len(infos) > maxDormant+1 {
			t.Errorf("%d sessions, %v", len(infos), err)
		}
		e, _ := execute(t, m, alice, "s0", "x")
		if !strings.Contains(e.Preamble(), "no kernel either") {
			t.Errorf("the first is told %q", e.Preamble())
		}
	})
}
