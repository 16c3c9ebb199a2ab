package sessions_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// shortened is a store that keeps no cells before one.
type shortened struct {
	*storetest.Memory
	first, asked int // asked counts how often it was asked for cells
}

func (s *shortened) Executions(ctx context.Context, ref sessions.SessionRef, from, limit int, code int64) ([]sessions.StoredExecution, error) {
	s.asked++
	all, err := s.Memory.Executions(ctx, ref, max(from, s.first), limit, code)
	return slices.DeleteFunc(all, func(e sessions.StoredExecution) bool { return e.Number < s.first }), err
}

// The first cell that is kept is known whether the session runs or not, and whatever of it was dropped.
func TestFirstExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shortened{Memory: storetest.NewMemory(), first: 1}
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer m.Shutdown(context.Background())
		o := sessions.Owner{Issuer: "i", Subject: "ann"}
		if _, err := m.FirstExecution(t.Context(), o, "s"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("of no session: %v", err)
		}
		for range 5 {
			e, err := m.Execute(t.Context(), o, sessions.Request{SessionID: "s", Language: "python", Code: "x"})
			if err == nil {
				_, err = e.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if first, err := m.FirstExecution(t.Context(), o, "s"); err != nil || first != 1 {
			t.Errorf("the first is %d, %v", first, err)
		}
		if err := m.Close(t.Context(), o, "s", sessions.CloseOptions{}); err != nil {
			t.Fatal(err)
		}
		for dropped, want := range map[int]int{1: 1, 4: 4, 6: 0} {
			store.first = dropped
			if first, err := m.FirstExecution(t.Context(), o, "s"); err != nil || first != want {
				t.Errorf("of those from %d on the first is %d, %v", dropped, first, err)
			}
		}
	})
}

// Where all cells of a session are in memory, its last ones are those, and the store is not asked: what it has behind them is another's.
func TestLastCellsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shortened{Memory: storetest.NewMemory()}
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer shutdown(t, m)
		runCell(t, m, "s", "one")
		runCell(t, m, "s", "two")
		store.asked = 0
		for _, most := range []int{1, 2, 20} {
			infos, err := m.Executions(t.Context(), sessions.Alice, "s", most)
			if want := min(most, 2); err != nil || len(infos) != want || infos[want-1].Number != 2 || store.asked != 0 {
				t.Errorf("of at most %d there are %+v, %v; the store was asked %d times", most, infos, err, store.asked)
			}
		}
	})
}

// Cells are read at once as they are one by one, whether they are in memory or in the store; of one that has ended, but whose threads
// go on, whoever has it sees what they print.
func TestExecutionsFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := kernelstest.NewProvisioner(), storetest.NewMemory()
		defer p.StopAll()
		m := newOnTheWire(t, p, store)
		defer shutdown(t, m)
		if _, err := m.ExecutionsFrom(t.Context(), sessions.Alice, "s", 1, 5, 0); fault.KindOf(err) != fault.NotFound {
			t.Errorf("of no session: %v", err)
		}
		runCell(t, m, "s", "late 1m afterwards")
		for range 9 {
			runCell(t, m, "s", "print x")
		}
		last := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 1h"))
		synctest.Wait()
		check := func(when string, from, limit int, want ...int) []*sessions.Execution {
			all, err := m.ExecutionsFrom(t.Context(), sessions.Alice, "s", from, limit, 0)
			numbers := []int{}
			for _, e := range all {
				one, err := m.Execution(t.Context(), sessions.Alice, "s", e.Number())
				if err != nil || one.Info().Code != e.Info().Code || one.Info().Phase != e.Info().Phase || one.Produced() != e.Produced() {
					t.Errorf("%s: cell %d is %+v, alone %+v, %v", when, e.Number(), e.Info(), one.Info(), err)
				}
				numbers = append(numbers, e.Number())
			}
			if err != nil || !slices.Equal(numbers, want) {
				t.Errorf("%s: of %d from %d on there are %v, want %v (%v)", when, limit, from, numbers, want, err)
			}
			return all
		}
		all := check("while it runs", -3, 30, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
		check("a part in the store", 2, 3, 2, 3, 4)
		check("a part in memory", 10, 2, 10, 11)
		check("none", 12, 5)
		some, err := m.ExecutionsFrom(t.Context(), sessions.Alice, "s", 2, 30, 2*int64(len("print x")))
		if err != nil || len(some) != 2 || some[0].Number() != 2 || some[1].Number() != 3 {
			t.Errorf("of much code %v were read, %v", some, err)
		}
		if before := lateTexts(all[0]); before != "" {
			t.Errorf("there is late output already: %q", before)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if late := lateTexts(all[0]); late != "afterwards\n" || all[0].Produced() != 1 {
			t.Errorf("of a cell that is in the store late output is %q", late)
		}
		if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil {
			t.Fatal(err)
		}
		sessions.WaitFor(t, last)
		all = check("when it has ended", 1, 30, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
		if late := lateTexts(all[0]); late != "afterwards\n" {
			t.Errorf("then it is %q", late)
		}
	})
}

// broken is a store that cannot be read.
type broken struct {
	*storetest.Memory
	err error
}

func (b broken) Session(context.Context, sessions.Owner, string) (sessions.StoredSession, error) {
	return sessions.StoredSession{}, b.err
}

// A session that may be in a store that cannot be read is not said not to exist.
func TestStoreThatCannotBeRead(t *testing.T) {
	store := broken{storetest.NewMemory(), errors.New("no disk")}
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
	defer m.Shutdown(context.Background())
	for what, ask := range map[string]func() error{
		"FirstExecution": func() error { _, err := m.FirstExecution(t.Context(), sessions.Alice, "s"); return err },
		"ExecutionPage":  func() error { _, err := m.ExecutionPage(t.Context(), sessions.Alice, "s", 1, 5); return err },
		"ExecutionsFrom": func() error { _, err := m.ExecutionsFrom(t.Context(), sessions.Alice, "s", 1, 5, 0); return err },
		"Executions":     func() error { _, err := m.Executions(t.Context(), sessions.Alice, "s", 5); return err },
		"Execution":      func() error { _, err := m.Execution(t.Context(), sessions.Alice, "s", 1); return err },
		"Account":        func() error { _, err := m.Account(t.Context(), sessions.Alice, "s"); return err },
	} {
		if err := ask(); !errors.Is(err, store.err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
