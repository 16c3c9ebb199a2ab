//go:build linux

package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"cellblock/kernels/kernelstest"
)

// A folder that hangs when it is opened holds up no launch, and what waits for it starts nothing when it answers again.
func TestStageWithASourceThatHangs(t *testing.T) {
	kernelstest.Need(t, os.Geteuid() == 0, "root, for a mount namespace,")
	opening, answer, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := stage{open: func(src stageSource) (*os.File, error) {
		close(opening)
		<-answer
		defer close(closed)
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
