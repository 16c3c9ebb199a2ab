//go:build linux

package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/mounts"
)

// A folder that hangs when it is opened holds up no launch and one thread, however many want it; and what has given it up starts nothing
// when it answers again.
func TestStageWithASourceThatHangs(t *testing.T) {
	kernelstest.Need(t, os.Geteuid() == 0, "root, for a mount namespace,")
	opening, answer, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var opens atomic.Int32
	s := stage{turns: &mounts.Finder{}, open: func(src stageSource) (*os.File, error) {
		if opens.Add(1) == 1 {
			close(opening)
			defer close(closed)
		}
		<-answer
		return openPath(src)
	}}
	s.add(t.TempDir(), true)
	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	go func() {
		<-opening
		cancel(given)
	}()
	cmd := exec.Command("true")
	if err := s.start(ctx, cmd); !errors.Is(err, given) {
		t.Errorf("start ended with %v", err)
	}
	other := stage{turns: s.turns}
	other.add(t.TempDir(), true)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := s.start(ctx, exec.Command("true")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("start of one more ended with %v", err)
		}
		cancel()
		free := exec.Command("true")
		if err := errors.Join(other.start(t.Context(), free), free.Wait()); err != nil {
			t.Errorf("a stage without the source: %v", err)
		}
	}
	if n := opens.Load(); n != 1 { // each has a thread of its own
		t.Errorf("%d stages hang", n)
	}
	close(answer)
	<-closed
	if cmd.Process != nil {
		t.Error("what nobody waits for was started")
	}
	s.open = nil
	if err := s.start(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
