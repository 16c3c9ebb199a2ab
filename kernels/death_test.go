package kernels_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// A dead kernel ends all that waits on it at once, with the cause.
func TestDeathEndsAllThatWaits(t *testing.T) {
	for _, tt := range []struct {
		code, cause string
		oom         bool
	}{
		{"die", "the kernel was killed by SIGKILL", false},
		{"die SIGSEGV", "the kernel was killed by SIGSEGV", false},
		{"die SIGABRT assertion failed", "the kernel was killed by SIGABRT", false},
		{"die SIGABRT FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "the kernel ran out of memory and was killed", true},
		{"exit 3", "the kernel exited with status 3", false},
		{"exit 1 No module named numpy", "the kernel exited with status 1: No module named numpy", false},
		{"oom", "the kernel ran out of memory and was killed", true},
		{"crash 137", "the kernel's container or sandbox ended with status 137", false},
	} {
		t.Run(tt.code, func(t *testing.T) {
			_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
			begun := time.Now()
			e := execute(t, c, "print a\nsleep 50ms\n"+tt.code)
			queued := execute(t, c, "print never")
			asked := make(chan error, 1)
			go func() { _, err := c.Complete(ctx(t), "x", 1); asked <- err }()
			if got := briefs(read(t, e)); got != "stdout:a" {
				t.Errorf("got %q", got)
			}
			for _, e := range []*kernels.Execution{e, queued} {
				<-e.Done()
				r := e.Result()
				if r.Status != kernels.StatusDied || r.Death == nil || r.Death.Cause != tt.cause || r.Death.OOM != tt.oom || r.Death.Asked {
					t.Errorf("result %+v, death %+v", r, r.Death)
				}
			}
			if _, err := queued.Next(ctx(t)); err != io.EOF {
				t.Errorf("queued: %v", err)
			}
			<-c.Done()
			for _, err := range []error{<-asked, c.Err(), c.Ready(ctx(t)), c.Interrupt(ctx(t))} {
				wantDeath(t, err, tt.cause)
				if fault.KindOf(err) != fault.Died {
					t.Errorf("kind of %v", err)
				}
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("noticed after %v", took)
			}
		})
	}
}

// An engine that is stopped has every container's first process end in order: nobody of ours has asked for that.
func TestStopFromOutside(t *testing.T) {
	const cause = "the kernel was stopped from outside, as when the container engine or the machine is stopped"
	for _, code := range []string{"terminated", "crash 0"} {
		_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
		e := execute(t, c, code)
		if <-e.Done(); e.Result().Death == nil || e.Result().Death.Cause != cause {
			t.Errorf("%s: %+v", code, e.Result().Death)
		}
		<-c.Done()
		wantDeath(t, c.Err(), cause)
	}
}

func TestReplyBeforeDeathCounts(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "noidle\n1+1")
	next(t, e, "execute_result:2")
	execute(t, c, "die")
	<-e.Done()
	if r := e.Result(); r.Status != kernels.StatusOK || r.Death == nil {
		t.Fatalf("got %+v", r)
	}
}

func TestKernelThatDoesNotComeUp(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{FailStart: "Traceback:\n  …\nModuleNotFoundError: No module named 'ipykernel'\n"}, kernels.Options{})
	err := c.Ready(ctx(t))
	wantDeath(t, err, "status 1: ModuleNotFoundError: No module named 'ipykernel'")
	var dead *kernels.DeathError
	if errors.As(err, &dead); dead.Death.Exit == nil || !strings.Contains(dead.Death.Exit.Output, "Traceback") {
		t.Fatalf("without the kernel's own words: %+v", dead)
	}
}

func TestContainerGoneBeforeConnect(t *testing.T) {
	k := kernelstest.NewKernel(kernelstest.KernelOptions{})
	k.Crash(kernels.ExitStatus{Code: -1, OOM: true})
	defer k.Close()
	_, err := kernels.Connect(ctx(t), k, kernels.Options{})
	wantDeath(t, err, "out of memory")
}

// A shim that says its kernel is dead and has no event left to explain it.
func TestKernelDeadOnArrival(t *testing.T) {
	var dead atomic.Bool
	k, first := start(t, kernelstest.KernelOptions{EditWelcome: func(w *stream.Welcome) { w.Alive = !dead.Load() }}, kernels.Options{})
	run(t, first, "1+1")
	if err := first.Ready(ctx(t)); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	dead.Store(true)
	c := connect(t, k, kernels.Options{Grace: 20 * time.Millisecond})
	<-c.Done()
	wantDeath(t, c.Err(), "already ended")
}

// The grace does not run while nothing can be heard: what is on its way still counts.
func TestGraceWaitsForTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernelstest.NewKernel(kernelstest.KernelOptions{})
		defer k.Close()
		c, err := kernels.Connect(t.Context(), k, kernels.Options{Grace: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		e, err := c.Execute(t.Context(), kernels.ExecuteRequest{Code: "idlefirst\nhangup"})
		if err != nil {
			t.Fatal(err)
		}
		k.Refuse(errors.New("down"))
		time.Sleep(6 * time.Second)
		k.Refuse(nil)
		<-e.Done()
		if r := e.Result(); r.Status != kernels.StatusOK {
			t.Fatalf("got %+v", r)
		}
	})
}

func TestShimThatNeverComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernelstest.NewKernel(kernelstest.KernelOptions{})
		defer k.Close()
		c, err := kernels.Connect(t.Context(), k, kernels.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		refused := &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/proc/self/fd/36"}, Err: errors.New("connection refused")}
		k.Refuse(fmt.Errorf("connecting: %w", refused))
		k.Hangup()
		begun := time.Now()
		<-c.Done()
		wantDeath(t, c.Err(), "cannot be reached any more: connection refused")
		if took := time.Since(begun); took > 30*time.Second {
			t.Fatalf("gave up after %v", took)
		}
	})
}
