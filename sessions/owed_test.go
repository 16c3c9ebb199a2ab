package sessions

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
)

// A session that is closed while its engine does not answer has ended, and says so; its kernel ends when the engine is back.
func TestKernelThatCannotBeStoppedIsStoppedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go m.KeepSwept(ctx)
		execute(t, m, alice, "s", "x")
		down := errors.New("the engine at unix:///run/user/7/engine.sock does not answer")
		p.stopErr.Store(&down)
		err := m.Close(t.Context(), alice, "s", CloseOptions{})
		if fault.KindOf(err) != fault.Unavailable || !errors.Is(err, down) || fault.Hint(err) != "it is stopped as soon as it can be reached; the session has ended" {
			t.Errorf("got %s", fault.Text(err))
		}
		if !strings.HasSuffix(err.Error(), "the engine at …/engine.sock does not answer") {
			t.Errorf("its caller is told the place: %v", err)
		}
		if _, err := m.Get(t.Context(), alice, "s"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("the session goes on: %v", err)
		}
		p.stopErr.Store(nil)
		time.Sleep(sweepPause + time.Second)
		if n := p.live.Load(); n != 0 {
			t.Errorf("%d kernels run on", n)
		}
	})
}
