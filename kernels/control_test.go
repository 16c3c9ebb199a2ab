package kernels_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// Interrupt what can be, kill a child, restart what cannot be interrupted.
func TestInterrupt(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "set x 1\nprint a\nwait")
	next(t, e, "stdout:a")
	if err := c.Interrupt(ctx(t)); err != nil {
		t.Fatal(err)
	}
	next(t, e, "error:KeyboardInterrupt")
	if got, _ := run(t, c, "get x"); got != "execute_result:1" {
		t.Fatalf("variables: %q", got)
	}
}

func TestKillChildren(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "child")
	next(t, e, "stdout:child")
	if n, err := c.KillChildren(ctx(t)); err != nil || n != 1 {
		t.Fatalf("killed %d, %v", n, err)
	}
	next(t, e, "stdout:the child was killed")
	if n, err := c.KillChildren(ctx(t)); err != nil || n != 0 {
		t.Fatalf("killed %d more, %v", n, err)
	}
}

func TestRestart(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	if got, _ := run(t, c, "set x 1\nincarnation"); got != "execute_result:1" {
		t.Fatal(got)
	}
	e := execute(t, c, "print a\nstubborn 1h")
	queued := execute(t, c, "print never")
	next(t, e, "stdout:a")
	if err := c.Restart(ctx(t), time.Second); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*kernels.Execution{e, queued} {
		if _, err := e.Next(ctx(t)); err != io.EOF {
			t.Errorf("got %v", err)
		}
		if r := e.Result(); r.Status != kernels.StatusDied || r.Death == nil || !r.Death.Asked {
			t.Errorf("result %+v", r)
		}
	}
	if err := c.Ready(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if v := c.Info().LanguageInfo.Version; v != "2" {
		t.Errorf("info of incarnation %s", v)
	}
	if got, _ := run(t, c, "incarnation\nget x"); got != "execute_result:2 | error:NameError" {
		t.Errorf("got %q", got)
	}
}

// What is sent during a restart waits for the new process and is not ended with the old one.
func TestExecuteDuringRestart(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	done := make(chan error, 1)
	go func() { done <- c.Restart(ctx(t), 0) }()
	for range 20 {
		e := execute(t, c, "incarnation")
		if got := briefs(read(t, e)); got == "execute_result:2" {
			break
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A restart whose reply the connection lost happens once.
func TestRestartOverABrokenConnection(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	broken := false
	k.OnRequest(func(q stream.Request) {
		if q.Op == stream.OpRestart && !broken {
			broken = true
			k.Hangup()
		}
	})
	if err := c.Restart(ctx(t), 0); err != nil {
		t.Fatal(err)
	}
	if got, _ := run(t, c, "incarnation"); got != "execute_result:2" {
		t.Fatal(got)
	}
}

// A container that its provisioner stopped is no death of the kernel's own.
func TestStoppedContainer(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "print a\nwait")
	next(t, e, "stdout:a")
	k.Crash(kernels.ExitStatus{Asked: true})
	<-c.Done()
	var dead *kernels.DeathError
	if err := c.Err(); !errors.As(err, &dead) || !dead.Death.Asked {
		t.Fatalf("got %v", err)
	}
	if r := e.Result(); r.Status != kernels.StatusDied || !r.Death.Asked {
		t.Fatalf("got %+v", r)
	}
}

func TestStats(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	if err := c.Ping(ctx(t)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Stats(ctx(t))
	if err != nil || s.Memory == 0 {
		t.Fatalf("got %+v, %v", s, err)
	}
}

func TestShimThatCannot(t *testing.T) {
	no := map[stream.Op]string{}
	for _, op := range []stream.Op{stream.OpInterrupt, stream.OpKillChildren, stream.OpRestart, stream.OpStats, stream.OpPing} {
		no[op] = "not\ntoday"
	}
	_, c := start(t, kernelstest.KernelOptions{FailOps: no}, kernels.Options{})
	for want, f := range map[string]func() error{
		"could not interrupt the kernel: not today":       func() error { return c.Interrupt(ctx(t)) },
		"could not kill the kernel's children: not today": func() error { _, err := c.KillChildren(ctx(t)); return err },
		"could not restart the kernel: not today":         func() error { return c.Restart(ctx(t), 0) },
		"could not take statistics: not today":            func() error { _, err := c.Stats(ctx(t)); return err },
		"could not answer: not today":                     func() error { return c.Ping(ctx(t)) },
	} {
		if err := f(); fault.KindOf(err) != fault.Unavailable || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if got, _ := run(t, c, "1+1"); got != "execute_result:2" {
		t.Errorf("afterwards: %q", got)
	}
}

// Ready only when IOPub delivers.
func TestReady(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    kernelstest.KernelOptions
	}{
		{"at once", kernelstest.KernelOptions{}},
		{"slow to boot", kernelstest.KernelOptions{Boot: 30 * time.Millisecond}},
		{"misses the first request (ipykernel 7)", kernelstest.KernelOptions{MissFirst: 1}},
		{"loses the first idle (slow joiner)", kernelstest.KernelOptions{NoIdles: 1}},
		{"says that IOPub is there", kernelstest.KernelOptions{NoIdles: 1000, IOPubWelcome: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, c := start(t, tt.o, kernels.Options{})
			if err := c.Ready(ctx(t)); err != nil {
				t.Fatal(err)
			}
			if i := c.Info(); i.LanguageInfo.Name != "fake" {
				t.Fatalf("info %+v", i)
			}
		})
	}
}

func TestReadyObeysItsContext(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{Boot: time.Hour}, kernels.Options{})
	err := c.Ready(short(t))
	if err == nil || fault.KindOf(c.Err()) == fault.Died {
		t.Fatalf("got %v", err)
	}
}

func TestCloseUnblocksAll(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{Boot: time.Hour}, kernels.Options{})
	e := execute(t, c, "wait")
	errs := make(chan error, 3)
	go func() { _, err := e.Next(ctx(t)); errs <- err }()
	go func() { errs <- c.Ready(ctx(t)) }()
	go func() { _, err := c.Inspect(ctx(t), "x", 0, 0); errs <- err }()
	time.AfterFunc(20*time.Millisecond, func() { _ = c.Close() })
	for range 3 {
		if err := <-errs; !errors.Is(err, kernels.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	<-e.Done()
	if r := e.Result(); r.Status != kernels.StatusIncomplete {
		t.Errorf("got %+v", r)
	}
	if err := c.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, err := c.Execute(ctx(t), kernels.ExecuteRequest{}); !errors.Is(err, kernels.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
