package sessions_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// slowReading is a store that is long about telling what kernels a session had.
type slowReading struct{ sessions.Store }

func (s slowReading) Generations(ctx context.Context, ref sessions.SessionRef) ([]sessions.StoredGeneration, error) {
	time.Sleep(time.Second)
	return s.Store.Generations(ctx, ref)
}

// A cell that comes while the kernel of a killed process is looked for is none of those that the process has left.
func TestCellWhileTheKernelIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "s", "x = 1")
		l.kill()
		m = l.begin(func(c *sessions.Config) { c.Store = slowReading{c.Store} })
		e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x"))
		r := sessions.WaitFor(t, e)
		if r.Status != "ok" || e.Generation() != 1 {
			t.Errorf("it ended with %+v, on generation %d", r, e.Generation())
		}
		all, err := m.Executions(t.Context(), sessions.Alice, "s", 10)
		if err != nil || len(all) != 2 {
			t.Fatalf("%d cells, %v: %+v", len(all), err, all)
		}
		for _, info := range all {
			if info.Result.Status != "ok" {
				t.Errorf("cell %d: %+v", info.Number, info)
			}
		}
		shutdown(t, m)
	})
}

// Cells that nobody knew a kernel for stay listed when the kernel is found.
func TestCellsBeforeTheKernelIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		for range 70 {
			runCell(t, m, "s", "x = 1")
		}
		l.kill()
		m, engine := l.survivor()
		engine.away.Store(true)
		if _, err := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x")).Wait(t.Context()); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("while the engine is away: %v", err)
		}
		engine.away.Store(false)
		runCell(t, m, "s", "x")
		all, err := m.Executions(t.Context(), sessions.Alice, "s", 3)
		var numbers []int
		for _, info := range all {
			numbers = append(numbers, info.Number)
		}
		if want := []int{70, 71, 72}; err != nil || !slices.Equal(numbers, want) {
			t.Errorf("listed are %v, %v", numbers, err)
		}
		shutdown(t, m)
	})
}
