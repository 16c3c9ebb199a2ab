package kernels_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// A client tells when it has read all that the shim had for it; where that is nothing, at once.
func TestCaughtUp(t *testing.T) {
	k, first := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, first, "count 100\nsleep 20s")
	next(t, e, "stdout:0")
	if err := k.AwaitLast(ctx(t), 100); err != nil { // more than half of them are there
		t.Fatal(err)
	}
	_ = first.Close()

	second := connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	await(t, second.CaughtUp())
	adopted, _ := second.Execution(e.ID())
	for range 50 { // all of these have been routed: no wait is needed
		over, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if _, err := adopted.Next(over); err != nil {
			t.Fatal(err)
		}
	}
	_ = second.Close()

	k, first = start(t, kernelstest.KernelOptions{}, kernels.Options{})
	if _, err := execute(t, first, "").Next(ctx(t)); err != io.EOF {
		t.Fatal(err)
	}
	run(t, first, "")
	if err := first.Ready(ctx(t)); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	await(t, connect(t, k, kernels.Options{}).CaughtUp())
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-ctx(t).Done():
		t.Fatal("waited in vain")
	}
}

// An adopted execution answers a prompt that an earlier client was asked.
func TestReplyToAnEarlierPrompt(t *testing.T) {
	k, first := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, first, "input name: ")
	e.Hold()
	if _, err := e.Next(ctx(t)); err != nil {
		t.Fatal(err)
	}
	e.Release(k.Last())
	_ = first.Close()
	second := connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	adopted, _ := second.Execution(e.ID())
	if err := adopted.Reply(ctx(t), "Ada"); err != nil {
		t.Fatal(err)
	}
	read(t, adopted)
	if r := adopted.Result(); r.Status != kernels.StatusOK {
		t.Errorf("it ended with %+v", r)
	}
}

// tapped counts what is written to a kernel's shim.
type tapped struct {
	*kernelstest.Kernel
	writes atomic.Int64
}

func (d *tapped) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := d.Kernel.Dial(ctx)
	return &tap{conn, &d.writes}, err
}

type tap struct {
	net.Conn
	writes *atomic.Int64
}

func (c *tap) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A client that has nothing to say lets a shim hear that it is there; one that goes on for ever need not.
func TestClientIsHeard(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		times    int64
	}{"patient": {3 * time.Hour, 4}, "for ever": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := kernelstest.NewKernel(kernelstest.KernelOptions{EditWelcome: func(w *stream.Welcome) {
					w.PatienceMS = tt.patience.Milliseconds()
				}})
				defer k.Close()
				d := &tapped{Kernel: k}
				c := connect(t, d, kernels.Options{})
				time.Sleep(time.Minute)
				before := d.writes.Load()
				time.Sleep(4 * time.Hour)
				synctest.Wait()
				if n := d.writes.Load() - before; (n == 0) != (tt.times == 0) || n < tt.times {
					t.Errorf("it was heard %d times", n)
				}
				_ = c.Close()
			})
		})
	}
}
