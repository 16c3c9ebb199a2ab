package sessions_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/history"
	"cellblock/sessions/storetest"
)

// with makes a Manager use a store and a data folder.
func with(store sessions.Store, dir string) func(*sessions.Config) {
	return func(c *sessions.Config) { c.Store, c.DataDir = store, dir }
}

func runCell(t *testing.T, m *sessions.Manager, id, code string) (*sessions.Execution, sessions.Result) {
	t.Helper()
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python(id, code))
	return e, sessions.WaitFor(t, e)
}

func shutdown(t *testing.T, m *sessions.Manager) {
	t.Helper()
	if err := m.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// recalled is an execution that the Manager must still know, with what it printed.
func recalled(t *testing.T, m *sessions.Manager, id string, number int) (*sessions.Execution, string) {
	t.Helper()
	e, err := m.Execution(t.Context(), sessions.Alice, id, number)
	if err != nil {
		t.Fatalf("Execution(%s, %d): %v", id, number, err)
	}
	return e, sessions.TextOf(t, e)
}

func TestHistoryGoesOnAfterARestart(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
	runCell(t, m, "s", "one")
	runCell(t, m, "s", "fail")
	lines, _ := runCell(t, m, "s", "print 50")
	want := sessions.TextOf(t, lines)
	shutdown(t, m)

	m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store.Another(), dir))
	infos, err := m.Executions(t.Context(), sessions.Alice, "s", 2)
	if err != nil || len(infos) != 2 || infos[0].Number != 2 || infos[0].Result.Status != kernels.StatusError || infos[1].Code != "print 50" {
		t.Fatalf("the last two cells of a session that does not run are %+v, %v", infos, err)
	}
	if _, got := recalled(t, m, "s", 3); got != want {
		t.Errorf("cell 3 printed %q, before the restart %q", got, want)
	}
	failed, _ := recalled(t, m, "s", 2)
	if r, err := failed.Wait(t.Context()); err != nil || r.Error == nil || r.Error.Name != "ValueError" || failed.Info().Phase != sessions.PhaseEnded {
		t.Errorf("cell 2 ended with %+v, %v", r, err)
	}
	e, r := runCell(t, m, "s", "again")
	if e.Number() != 4 || e.Generation() != 2 || r.Unsaved != nil {
		t.Errorf("the next cell is %d in generation %d, unsaved: %v", e.Number(), e.Generation(), r.Unsaved)
	}
	if p := e.Preamble(); !strings.Contains(p, "the server was stopped") || !strings.Contains(p, "variables") {
		t.Errorf("it is told %q", p)
	}
	infos, err = m.Executions(t.Context(), sessions.Alice, "s", 10)
	if err != nil || len(infos) != 4 || infos[3].Number != 4 || infos[0].Code != "one" {
		t.Errorf("all cells are %+v, %v", infos, err)
	}
	if _, got := recalled(t, m, "s", 1); got != "one" {
		t.Errorf("cell 1 printed %q", got)
	}
	if _, err := m.Execution(t.Context(), sessions.Alice, "s", 9); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a cell that never was: %v", err)
	}
	if _, err := m.Execution(t.Context(), sessions.Bob, "s", 1); fault.KindOf(err) != fault.NotFound {
		t.Errorf("somebody else's cell: %v", err)
	}
}

// What is told when a server was killed while a cell ran and another waited.
func TestHistoryOfAKilledServer(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
	runCell(t, m, "s", "one")
	running := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "stubborn"))
	queued := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "two"))
	for phase := running.Info().Phase; phase != sessions.PhaseRunning; phase = running.Info().Phase {
		time.Sleep(time.Millisecond)
	}
	for _, e := range []*sessions.Execution{running, queued} {
		if err := e.Saved(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	store.Kill()
	store.Fail(fault.New(fault.Unavailable, "killed"))

	m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store.Another(), dir))
	check := func(when string) {
		t.Helper()
		e, _ := recalled(t, m, "s", 2)
		if r, err := e.Wait(t.Context()); err != nil || r.Status != kernels.StatusDied || !strings.Contains(r.Death.Cause, "server") {
			t.Errorf("%s the cell that ran ended with %+v, %v", when, r, err)
		}
		e, err := m.Execution(t.Context(), sessions.Alice, "s", 3)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Wait(t.Context()); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s the cell that waited ended with %v", when, err)
		}
	}
	check("before the session is used again,")
	e, _ := runCell(t, m, "s", "next")
	if e.Number() != 4 || !strings.Contains(e.Preamble(), "is gone, as after a restart of the machine") {
		t.Errorf("the next cell is %d and told %q", e.Number(), e.Preamble())
	}
	check("after it was used again,")
}

func TestSessionOfAnotherProcess(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	first := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
	second := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store.Another(), dir))
	runCell(t, first, "s", "one")
	e, err := second.Execute(t.Context(), sessions.Alice, sessions.Python("s", "two"))
	if err == nil {
		_, err = e.Wait(t.Context())
	}
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("a cell for another process's session: %v", err)
	}
	if err := second.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{DeleteFiles: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("deleting another process's session: %v", err)
	}
	if e, _ := runCell(t, first, "s", "three"); e.Number() != 2 {
		t.Errorf("the owner of the session goes on with cell %d", e.Number())
	}
	if err := first.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	if e, _ := runCell(t, second, "s", "four"); e.Number() != 3 {
		t.Errorf("after it was closed there, here it goes on with cell %d", e.Number())
	}
}

func TestResultsWaitForTheirCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer m.Shutdown(context.Background())
		runCell(t, m, "s", "warm")
		release := store.Block()
		e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "print 3"))
		synctest.Wait()
		if got := sessions.TextOf(t, e); got != "line 0\nline 1\nline 2\n" {
			t.Errorf("meanwhile a reader sees %q", got)
		}
		select {
		case <-e.Done():
			t.Error("its result was handed out before it was committed")
		default:
		}
		release()
		if r := sessions.WaitFor(t, e); r.Unsaved != nil {
			t.Errorf("unsaved: %v", r.Unsaved)
		}
	})
}

// A store that fails is told in the result, holds nothing up, and gets all of it when it works again.
func TestStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer m.Shutdown(context.Background())
		runCell(t, m, "old", "before")
		full := fault.New(fault.Unavailable, "the disk is full").WithHint("make room")
		store.Fail(full)
		began := time.Now()
		for _, id := range []string{"old", "new"} {
			for range 3 {
				if _, r := runCell(t, m, id, "print 100"); r.Status != kernels.StatusOK || fault.KindOf(r.Unsaved) != fault.Unavailable {
					t.Errorf("%s: %s, unsaved: %v", id, r.Status, r.Unsaved)
				}
			}
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("six cells waited %v for the disk", waited)
		}
		time.Sleep(50 * time.Second) // the pauses are long by now
		store.Fail(nil)
		if _, r := runCell(t, m, "new", "after"); r.Unsaved != nil {
			t.Errorf("after the disk works again: %v", r.Unsaved)
		}
		synctest.Wait()
		if stored, err := store.Session(t.Context(), sessions.Alice, "old"); err != nil || stored.Executions != 4 {
			t.Errorf("the other session has %d cells in the store, %v", stored.Executions, err)
		}
		shutdown(t, m)
		m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store.Another() })
		defer m.Shutdown(context.Background())
		for id, cells := range map[string]int{"old": 4, "new": 4} {
			infos, err := m.Executions(t.Context(), sessions.Alice, id, 10)
			if err != nil || len(infos) != cells {
				t.Fatalf("%s: %d cells were saved, %v", id, len(infos), err)
			}
			if _, got := recalled(t, m, id, 3); strings.Count(got, "\n") != 100 {
				t.Errorf("%s: %d lines were saved", id, strings.Count(got, "\n"))
			}
		}
	})
}

func TestDeletingFilesDeletesHistory(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
	runCell(t, m, "running", "one")
	runCell(t, m, "closed", "one")
	if m.IsClosed(t.Context(), sessions.Alice, "closed") {
		t.Error("it is closed before it is")
	}
	if err := m.Close(t.Context(), sessions.Alice, "closed", sessions.CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	if !m.IsClosed(t.Context(), sessions.Alice, "closed") || m.IsClosed(t.Context(), sessions.Alice, "running") || !m.IsClosed(t.Context(), sessions.Alice, "never") {
		t.Error("one of three is said to be what it is not")
	}
	for _, id := range []string{"running", "closed"} {
		if err := m.Close(t.Context(), sessions.Alice, id, sessions.CloseOptions{DeleteFiles: true}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := m.Executions(t.Context(), sessions.Alice, id, 5); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: its cells: %v", id, err)
		}
		if e, _ := runCell(t, m, id, "anew"); e.Number() != 1 {
			t.Errorf("%s: it goes on with cell %d", id, e.Number())
		}
	}
	if err := m.Close(t.Context(), sessions.Alice, "never", sessions.CloseOptions{DeleteFiles: true}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a session that never was: %v", err)
	}
}

// Whatever comes at the same time, a session's numbers go on, and the session that ends does not disturb the next.
func TestClosedAndUsedAtOnce(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		store := storetest.NewMemory()
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		seen := map[int]bool{}
		for range 20 {
			e, r := runCell(t, m, "s", "print 5")
			if r.Unsaved != nil || seen[e.Number()] && !deleted {
				t.Fatalf("cell %d again, unsaved: %v", e.Number(), r.Unsaved)
			}
			seen[e.Number()] = true
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{DeleteFiles: deleted}); err != nil {
					t.Error(err)
				}
			})
			next, err := m.Execute(t.Context(), sessions.Alice, sessions.Python("s", "x"))
			if err != nil {
				t.Fatal(err)
			}
			if r, err := next.Wait(t.Context()); err == nil && r.Unsaved != nil {
				t.Errorf("cell %d is unsaved: %v", next.Number(), r.Unsaved)
			}
			wg.Wait()
			seen[next.Number()] = true
		}
	}
}

func openHistory(t *testing.T, dir string) *history.Store {
	t.Helper()
	s, err := history.Open(t.Context(), history.Options{Folder: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Memory holds what is not in the store and a little more; readers get everything all the same, at any time.
func TestOutputsAreReadBack(t *testing.T) {
	const lines = 20_000
	dir := t.TempDir()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(openHistory(t, dir), dir))
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", fmt.Sprintf("print %d", lines)))
	var readers sync.WaitGroup
	check := func() {
		n := 0
		for out, err := range e.OutputsFrom(t.Context(), 0) {
			if err != nil || out.Index != n || out.Text != fmt.Sprintf("line %d\n", n) {
				t.Errorf("output %d is %d: %q, %v", n, out.Index, out.Text, err)
				return
			}
			n++
		}
		if n != lines {
			t.Errorf("%d outputs were read", n)
		}
	}
	readers.Go(check)
	readers.Go(check)
	if r := sessions.WaitFor(t, e); r.Unsaved != nil {
		t.Fatal(r.Unsaved)
	}
	readers.Go(check)
	readers.Wait()
	if held := e.InMemory(); held > 256<<10 {
		t.Errorf("%d bytes of an ended cell are in memory", held)
	}
	n := 0
	for out := range e.OutputsFrom(t.Context(), lines-10) {
		if out.Text != fmt.Sprintf("line %d\n", lines-10+n) {
			t.Errorf("from %d on, output %d is %q", lines-10, n, out.Text)
		}
		n++
	}
	if n != 10 {
		t.Errorf("from %d on there are %d", lines-10, n)
	}
}

// Of what is too much even for the store, head and tail are kept, and all readers are told the same.
func TestStoreKeepsHeadAndTail(t *testing.T) {
	const lines, limit = 20_000, 256 << 10
	dir := t.TempDir()
	store := openHistory(t, dir)
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir), func(c *sessions.Config) { c.RecordBytes = limit })
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", fmt.Sprintf("print %d", lines)))
	sessions.WaitFor(t, e)
	live := sessions.TextOf(t, e)
	if !strings.HasPrefix(live, "line 0\n") || !strings.HasSuffix(live, fmt.Sprintf("line %d\n", lines-1)) || strings.Count(live, "left out here") != 1 {
		t.Errorf("live it is %.60q … %.60q", live, live[len(live)-60:])
	}
	shutdown(t, m)
	m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir), func(c *sessions.Config) { c.RecordBytes = limit })
	if _, stored := recalled(t, m, "s", 1); stored != live {
		t.Errorf("from the store it is %d bytes, live it was %d", len(stored), len(live))
	}
}

func TestMintedIDsAreNotInTheHistory(t *testing.T) {
	store := storetest.NewMemory()
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
	seen := map[string]bool{}
	for range 30 {
		e, _ := runCell(t, m, "", "x")
		if seen[e.SessionID()] || e.Number() != 1 {
			t.Fatalf("%s, cell %d", e.SessionID(), e.Number())
		}
		seen[e.SessionID()] = true
		if err := m.Close(t.Context(), sessions.Alice, e.SessionID(), sessions.CloseOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFloodsCostFewCommits(t *testing.T) {
	const lines = 50_000
	store := &counting{Store: openHistory(t, t.TempDir())}
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
	runCell(t, m, "s", fmt.Sprintf("print %d", lines))
	if store.commits > lines/50 {
		t.Errorf("%d outputs took %d commits", lines, store.commits)
	}
	t.Logf("%d outputs took %d commits", lines, store.commits)
}

// A kernel is known to the store as soon as it runs a cell: one that is not is ended by the next process.
func TestAKernelIsKnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: storetest.NewMemory()}
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer m.Shutdown(context.Background())
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 10s"))
		synctest.Wait() // no time passes
		if store.generations != 1 {
			t.Error("a kernel runs that the store does not know")
		}
	})
}

// So is one from the pool, which runs its first cell before anything of it is saved.
func TestAPooledKernelIsKnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: storetest.NewMemory()}
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store, c.PoolSize = store, 1 })
		defer m.Shutdown(context.Background())
		m.StartPool()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := m.Stats().Pool.Ready["python"]; n != 1 || store.generations != 0 {
			t.Fatalf("%d kernels in the pool, the store knows %d", n, store.generations)
		}
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 10s"))
		synctest.Wait() // no time passes
		if store.generations != 1 {
			t.Error("a kernel runs that the store does not know")
		}
	})
}

// counting counts commits, and the kernels that they tell of.
type counting struct {
	sessions.Store
	mu                   sync.Mutex
	commits, generations int
}

func (c *counting) Commit(ctx context.Context, ref sessions.SessionRef, changes ...sessions.Change) error {
	c.mu.Lock()
	c.commits++
	for _, change := range changes {
		if _, ok := change.(sessions.GenerationBegan); ok {
			c.generations++
		}
	}
	c.mu.Unlock()
	return c.Store.Commit(ctx, ref, changes...)
}

// What a list says of a kernel's end is in the store already.
func TestNoLossIsListedBeforeItIsCommitted(t *testing.T) {
	for name, lose := range map[string]func(*sessions.FakeProvisioner){
		"died":   func(p *sessions.FakeProvisioner) { p.KillLast() },
		"culled": func(*sessions.FakeProvisioner) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, p := storetest.NewMemory(), &sessions.FakeProvisioner{}
				m := sessions.NewTestManager(t, p, func(c *sessions.Config) { c.Store, c.IdleTimeout = store, time.Minute })
				defer m.Shutdown(context.Background())
				runCell(t, m, "s", "x")
				release := store.Block()
				lose(p)
				synctest.Wait()
				if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || info.State != sessions.Idle {
					t.Errorf("before it is committed: %s, %v", info.State, err)
				}
				release()
				synctest.Wait()
				if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || string(info.State) != name {
					t.Errorf("then: %s, %v", info.State, err)
				}
			})
		})
	}
}

// A store that does not work for very long is told before a cell runs, not by leaving some of what happened out.
func TestNoCellIsTakenThatCouldNotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer m.Shutdown(context.Background())
		runCell(t, m, "s", "one")
		store.Fail(fault.New(fault.Unavailable, "the disk is full (write /var/lib/cellblock/blobs/c0/new-1)").WithHint("make room"))
		runCell(t, m, "s", "two")
		sessions.Burden(m, "s", sessions.MaxWaiting)
		_, err := m.Execute(t.Context(), sessions.Alice, sessions.Python("s", "three"))
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the disk is full") || strings.Contains(err.Error(), "blobs") || !strings.Contains(fault.Hint(err), "make room") {
			t.Errorf("one cell more: %v, hint %q", err, fault.Hint(err))
		}
		store.Fail(nil)
		time.Sleep(time.Minute)
		if e, r := runCell(t, m, "s", "four"); e.Number() != 3 || r.Unsaved != nil {
			t.Errorf("when the disk works again, cell %d is unsaved: %v", e.Number(), r.Unsaved)
		}
		if stored, err := store.Session(t.Context(), sessions.Alice, "s"); err != nil || stored.Executions != 3 {
			t.Errorf("%d cells are in the store, %v", stored.Executions, err)
		}
	})
}
