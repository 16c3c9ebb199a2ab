package sessions_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// A kernel that nobody uses is stopped, but not before it can be told from one that is about to be used.
func TestKernelsThatNobodyUsesAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := kernelstest.NewProvisioner(), storetest.NewMemory()
		defer p.StopAll()
		m := newOnTheWire(t, p, store)
		defer shutdown(t, m)
		runCell(t, m, "s", "print x")
		if _, err := p.Launch(t.Context(), kernels.Spec{ID: "lostlostlostlost", Workspace: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.KeepSwept(ctx) }()
		runningAfter := func(pause time.Duration, want int) {
			t.Helper()
			time.Sleep(pause)
			synctest.Wait()
			if refs, err := p.List(t.Context()); err != nil || len(refs) != want {
				t.Errorf("%d kernels run, want %d; %v", len(refs), want, err)
			}
		}
		runningAfter(9*time.Minute, 2)
		store.Fail(fault.New(fault.Unavailable, "the disk is full"))
		runningAfter(3*time.Minute, 1)
		runningAfter(15*time.Minute, 1)
		store.Fail(nil)
		if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || info.State != sessions.Idle {
			t.Errorf("the session: %+v, %v", info, err)
		}
		cancel()
		<-done
	})
}
