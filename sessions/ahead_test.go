package sessions_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// asked counts how often a store was asked for a session, and may fail.
type asked struct {
	sessions.Store
	times atomic.Int32
	fails atomic.Bool
}

func (a *asked) Session(ctx context.Context, o sessions.Owner, id string) (sessions.StoredSession, error) {
	a.times.Add(1)
	if a.fails.Load() {
		return sessions.StoredSession{}, fault.New(fault.Unavailable, "the disk is busy")
	}
	return a.Store.Session(ctx, o, id)
}

// What a call has read of a session's past the session does not read again, and it goes on from there, kernel from the pool or not.
func TestPastIsReadOnce(t *testing.T) {
	for _, size := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			store := &asked{Store: storetest.NewMemory()}
			m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store, c.PoolSize = store, size })
			defer m.Shutdown(context.Background())
			m.StartPool()
			time.Sleep(time.Minute)
			for n := range 3 {
				store.times.Store(0)
				e, _ := runCell(t, m, "s", "x")
				if got := store.times.Load(); got != 1 || e.Number() != n+1 || e.Generation() != n+1 {
					t.Errorf("asked %d times; cell %d, generation %d", got, e.Number(), e.Generation())
				}
				if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
			}
			store.times.Store(0)
			store.fails.Store(true)
			sessions.StartCell(t, m, sessions.Alice, sessions.Python("other", "x"))
			if got := store.times.Load(); got < 2 {
				t.Errorf("a store that gave no answer was asked %d times", got)
			}
			synctest.Wait()
		})
	}
}
