package kernels_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

func short(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return c
}

// A reader that is slow stops the stream, not the kernel, at the queue's bound; nothing is lost.
func TestQueueIsBounded(t *testing.T) {
	const total, queue, piece = 4 << 20, 256 << 10, 16 << 10
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{QueueBytes: queue, Grace: 30 * time.Millisecond})
	asked := make(chan stream.Op, 1)
	k.OnRequest(func(q stream.Request) { asked <- q.Op })
	e := execute(t, c, "flood 4194304\n1+1")
	if err := k.AwaitLast(ctx(t), total/piece+4); err != nil { // the kernel is not held up
		t.Fatal(err)
	}
	if got := c.Held(); got > queue+piece+1024 {
		t.Fatalf("holds %d bytes", got)
	}
	select {
	case <-e.Done():
		t.Fatal("ended unread") // also: the grace does not run
	case <-time.After(100 * time.Millisecond):
	}
	// The interrupt goes out; its answer comes behind the output.
	if err := c.Interrupt(short(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	select {
	case <-asked:
	case <-ctx(t).Done():
		t.Fatal("the interrupt did not go out")
	}
	n := 0
	outs := read(t, e)
	for _, o := range outs {
		n += len(o.Text)
	}
	if n != total || brief(outs[len(outs)-1]) != "execute_result:2" || e.Result().Status != kernels.StatusOK {
		t.Fatalf("%d bytes, %+v", n, e.Result())
	}
}

func TestFullQueueIsReleased(t *testing.T) {
	for _, tt := range []struct {
		name string
		by   func(*kernelstest.Kernel, *kernels.Client, *kernels.Execution)
	}{
		{"by Close", func(_ *kernelstest.Kernel, c *kernels.Client, _ *kernels.Execution) { _ = c.Close() }},
		{"by Forget", func(_ *kernelstest.Kernel, _ *kernels.Client, e *kernels.Execution) { e.Forget() }},
		{"by the container's end", func(k *kernelstest.Kernel, _ *kernels.Client, _ *kernels.Execution) {
			k.Crash(kernels.ExitStatus{Code: 1})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{QueueBytes: 64 << 10})
			e := execute(t, c, "flood 1048576")
			if err := k.AwaitLast(ctx(t), 64); err != nil {
				t.Fatal(err)
			}
			tt.by(k, c, e)
			select {
			case <-e.Done():
			case <-ctx(t).Done():
				t.Fatal("still waits")
			}
		})
	}
}

func TestHugeFrame(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{QueueBytes: 1 << 20})
	e := execute(t, c, "huge 20000000\n1+1")
	outs := read(t, e)
	if len(outs) != 2 || len(outs[0].Text) != 20000000 {
		t.Fatalf("%d outputs", len(outs))
	}
}

func TestFrameAboveTheLimit(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{MaxFrame: 1 << 20})
	e := execute(t, c, "huge 2000000")
	<-c.Done()
	wantDeath(t, c.Err(), "frame above the limit")
	if r := e.Result(); r.Status != kernels.StatusDied {
		t.Fatalf("got %+v", r)
	}
}
