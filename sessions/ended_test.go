package sessions_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// Cells that the store has are not in memory, and can be asked for all the same.
func TestEndedCellsAreInMemoryUntilTheyAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cells = 12
		store := storetest.NewMemory()
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer shutdown(t, m)
		for i := range cells {
			runCell(t, m, "s", fmt.Sprintf("print %d", i+1))
		}
		if n := m.Recent(sessions.Alice, "s"); n > 5 {
			t.Errorf("%d of %d cells are in memory", n, cells)
		}
		infos, err := m.Executions(t.Context(), sessions.Alice, "s", 100)
		if err != nil || len(infos) != cells {
			t.Fatalf("%d cells are listed, %v", len(infos), err)
		}
		for i, info := range infos {
			if e, _ := recalled(t, m, "s", i+1); info.Number != i+1 || e.Info().Code != info.Code {
				t.Errorf("cell %d is %+v, and %q when asked for", i+1, info, e.Info().Code)
			}
		}
		store.Fail(fault.New(fault.Unavailable, "the disk is full"))
		for range cells {
			runCell(t, m, "s", "1")
		}
		if n := m.Recent(sessions.Alice, "s"); n < cells {
			t.Errorf("%d cells are in memory, of %d that the store does not have", n, cells)
		}
	})
}

// Late output finds its cell, and is let go by the shim, when neither cell nor request is in memory any more.
func TestLateOutputOfACellThatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := kernelstest.NewProvisioner(), storetest.NewMemory()
		defer p.StopAll()
		m := newOnTheWire(t, p, store)
		defer shutdown(t, m)
		runCell(t, m, "s", "late 10s at last")
		for range 8 {
			runCell(t, m, "s", "print x")
		}
		time.Sleep(time.Minute)
		k := p.Kernel(p.Launched()[0].ID)
		if k.Acked() != k.Last() {
			t.Errorf("%d of %d are acknowledged", k.Acked(), k.Last())
		}
		e, _ := runCell(t, m, "s", "print y")
		late := e.Late()
		if len(late) != 1 || late[0].Number != 1 || late[0].Outputs[0].Text != "at last\n" {
			t.Errorf("late output is %+v", late)
		}
	})
}

// Cells that were cancelled while they waited ended before the one that runs: the list has no gap for that.
func TestCellsThatNeverRanAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 8
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = storetest.NewMemory() })
		defer shutdown(t, m)
		first := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 1m"))
		synctest.Wait()
		for range waiting {
			sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "1")).Cancel()
		}
		synctest.Wait()
		for _, when := range []string{"while it runs", "after its end"} {
			infos, err := m.Executions(t.Context(), sessions.Alice, "s", 100)
			if err != nil || len(infos) != waiting+1 {
				t.Errorf("%s, %d cells are listed, %v", when, len(infos), err)
			}
			sessions.WaitFor(t, first)
		}
		runCell(t, m, "s", "1")
		if infos, err := m.Executions(t.Context(), sessions.Alice, "s", 100); err != nil || len(infos) != waiting+2 {
			t.Errorf("in the end, %d cells are listed, %v", len(infos), err)
		}
	})
}

// Why a cell is not kept is told without the server's folders, which are in the log.
func TestUnsavedTellsNoPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, t.TempDir()))
		store.Fail(fault.New(fault.Unavailable, "the disk is full (write /var/lib/cellblock/blobs/c0/new-1: no space left on device)"))
		if _, r := runCell(t, m, "s", "1"); r.Unsaved == nil || !strings.Contains(r.Unsaved.Error(), "the disk is full") || strings.Contains(r.Unsaved.Error(), "blobs") {
			t.Errorf("told is: %v", r.Unsaved)
		}
		store.Fail(nil)
	})
}

// Many cells may end while the disk is full. The store gets all of them when it works again, and the large ones whole.
func TestFullDiskTakesNothingAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines, cells = 10_000, 300
		store, dir := storetest.NewMemory(), t.TempDir()
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir))
		store.Fail(fault.New(fault.Unavailable, "the disk is full"))
		large, _ := runCell(t, m, "s", fmt.Sprintf("print %d", lines))
		want := sessions.TextOf(t, large)
		for range cells {
			if _, r := runCell(t, m, "s", "1"); r.Unsaved == nil {
				t.Fatal("the store works")
			}
		}
		if infos, err := m.Executions(t.Context(), sessions.Alice, "s", 1000); err != nil || len(infos) != 1+cells {
			t.Errorf("meanwhile %d cells are listed, %v", len(infos), err)
		}
		if _, got := recalled(t, m, "s", 1); got != want {
			t.Errorf("meanwhile the first has %d bytes, not %d", len(got), len(want))
		}
		store.Fail(nil)
		time.Sleep(time.Minute)
		runCell(t, m, "s", "1")
		if n := m.Recent(sessions.Alice, "s"); n > 70 {
			t.Errorf("%d cells are in memory that the store has", n)
		}
		shutdown(t, m)
		m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store.Another(), dir))
		if _, got := recalled(t, m, "s", 1); got != want {
			t.Errorf("the store has %d bytes of the first, not %d", len(got), len(want))
		}
		if infos, err := m.Executions(t.Context(), sessions.Alice, "s", 1000); err != nil || len(infos) != 2+cells {
			t.Errorf("the store lists %d cells, %v", len(infos), err)
		}
	})
}

// Whoever waits for a cell finds it counted: the metrics and the audit log are told before.
func TestEndIsToldBeforeAnybodyIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		m := newLife(t).begin(func(c *sessions.Config) {
			c.Ended = func(_ sessions.Owner, e *sessions.Execution) {
				told++
				select {
				case <-e.Done():
					t.Error("who waits for the cell was told first")
				default:
				}
				if phase, _ := e.Phase(); phase != sessions.PhaseEnded {
					t.Errorf("the cell is %s", phase)
				}
			}
		})
		if runCell(t, m, "s", "x = 1"); told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}
