package kernels_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// Whatever happens to the stream while an execution runs, its output comes once and in order.
func TestStreamFaultsLoseNothing(t *testing.T) {
	for _, tt := range []struct {
		fault string
		dials int
	}{
		{"twice", 1}, {"skip", 2}, {"cut", 2}, {"garbage", 2}, {"claim", 2}, {"hangup", 2}, {"wrongtype", 2},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
			code := "count 50\n" + tt.fault + "\ncount 50\nprint end\n1+1"
			got, r := run(t, c, code)
			if want := counted(50) + counted(50) + "stdout:end | execute_result:2"; got != want || r.Status != kernels.StatusOK {
				t.Errorf("got %q %s", got, r.Status)
			}
			if k.Dials() != tt.dials {
				t.Errorf("%d connections, want %d", k.Dials(), tt.dials)
			}
		})
	}
}

func counted(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("stdout:" + strconv.Itoa(i) + " | ")
	}
	return b.String()
}

func TestShimThatRepeatsNonsenseEndsTheClient(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "print a\nnonsense\nprint b")
	if got := briefs(read(t, e)); got != "stdout:a" || e.Result().Status != kernels.StatusDied {
		t.Fatalf("got %q %s", got, e.Result().Status)
	}
	<-c.Done()
	wantDeath(t, c.Err(), "cannot be reached")
	if k.Dials() != 3 {
		t.Fatalf("%d connections", k.Dials())
	}
}

// A second client goes on where the first stopped reading, in the middle of an execution.
func TestResumeByAnotherClient(t *testing.T) {
	const n = 2000
	k, first := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, first, "count "+strconv.Itoa(n)+"\n1+1")
	var got []string
	for range 700 {
		out, err := e.Next(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, brief(out))
	}
	_ = first.Close()
	if _, err := e.Next(ctx(t)); !errors.Is(err, kernels.ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
	got = got[:len(got)-1] // it was not dealt with when the client was closed: it comes again

	second := connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	adopted, ok := second.Execution(e.ID())
	if !ok {
		t.Fatal("not adopted")
	}
	for _, out := range read(t, adopted) {
		got = append(got, brief(out))
	}
	if want := counted(n) + "execute_result:2"; strings.Join(got, " | ") != want {
		t.Fatalf("%d outputs; not what was printed", len(got))
	}
	if r := adopted.Result(); r.Status != kernels.StatusOK {
		t.Fatalf("result %+v", r)
	}
}

// A held execution's outputs are dealt with when they are released, however far Next has read.
func TestAcknowledgeWhatIsHeld(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "print a\nprint b\nprint c")
	e.Hold()
	e.Release(1 << 40) // nothing was read: nothing can have been dealt with
	var seqs []uint64
	for range 3 {
		out, err := e.Next(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, out.Seq)
	}
	<-e.Done()
	e.Release(seqs[1])
	e.Release(seqs[0])
	awaitAck(t, k, seqs[1])
	_ = c.Close()

	c = connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	e, _ = c.Execution(e.ID())
	e.Hold()
	next(t, e, "stdout:c")
	if _, err := e.Next(ctx(t)); err != io.EOF {
		t.Fatal(err)
	}
	e.Release(seqs[2])
	awaitAck(t, k, seqs[2])
	_ = c.Close() // the end was not left

	c = connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	e, _ = c.Execution(e.ID())
	e.Hold()
	for range 2 {
		if _, err := e.Next(ctx(t)); err != io.EOF {
			t.Fatal(err)
		}
	}
	awaitAck(t, k, k.Last())
}

// Late output that is held is acknowledged when it is released, and what came after it not before it.
func TestAcknowledgeLateOutput(t *testing.T) {
	for name, release := range map[string]func(*kernels.Client, *kernels.Execution, uint64){
		"by its execution": func(_ *kernels.Client, e *kernels.Execution, seq uint64) { e.Release(seq) },
		"by its id":        func(c *kernels.Client, e *kernels.Execution, seq uint64) { c.ReleaseLate(e.ID(), seq) },
	} {
		t.Run(name, func(t *testing.T) {
			lates := make(chan kernels.Output, 3)
			k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{Late: func(o kernels.Output, _ string) bool {
				lates <- o
				return o.Text != "second\n"
			}})
			e := execute(t, c, "late 10ms first\nlate 20ms second\nlate 30ms third")
			read(t, e)
			if _, err := e.Next(ctx(t)); err != io.EOF { // the end is left
				t.Fatal(err)
			}
			first, _, third := <-lates, <-lates, <-lates
			run(t, c, "1+1") // all three have been dealt with or are held
			release(c, e, first.Seq-1)
			if seq := c.Dealt(); seq >= first.Seq {
				t.Fatalf("%d is dealt with, and %d is held", seq, first.Seq)
			}
			release(c, e, first.Seq)
			if seq := c.Dealt(); seq >= third.Seq || seq < first.Seq {
				t.Fatalf("%d is dealt with, %d was released, and %d is held", seq, first.Seq, third.Seq)
			}
			release(c, e, 1<<40)
			if err := k.AwaitAck(ctx(t), third.Seq); err != nil {
				t.Fatalf("acknowledged %d, want %d", k.Acked(), third.Seq)
			}
		})
	}
}

// Late output may be released before Late has returned, by whoever stores it.
func TestLateOutputReleasedAtOnce(t *testing.T) {
	var c *kernels.Client
	ready := make(chan struct{})
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{Late: func(o kernels.Output, parent string) bool {
		<-ready
		c.ReleaseLate(parent, o.Seq)
		return true
	}})
	close(ready)
	read(t, execute(t, c, "late 10ms x\nlate 20ms y"))
	e := execute(t, c, "sleep 50ms\n1+1")
	read(t, e)
	if _, err := e.Next(ctx(t)); err != io.EOF {
		t.Fatal(err)
	}
	if err := k.AwaitAck(ctx(t), k.Last()); err != nil {
		t.Fatalf("acknowledged %d of %d", k.Acked(), k.Last())
	}
}

// With After left out the shim says where to go on: at what was never acknowledged.
func TestAcknowledge(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "print a\nprint b\nprint c")
	a := next(t, e, "stdout:a")
	next(t, e, "stdout:b")
	<-e.Done()
	_ = c.Close() // a was left by asking for b; b was not
	awaitAck(t, k, a.Seq)

	c = connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	e, _ = c.Execution(e.ID())
	next(t, e, "stdout:b")
	last := next(t, e, "stdout:c")
	if _, err := e.Next(ctx(t)); err != io.EOF {
		t.Fatal(err)
	}
	_ = c.Close() // the end was returned, but not left
	awaitAck(t, k, last.Seq)

	c = connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	e, _ = c.Execution(e.ID())
	for range 2 {
		if _, err := e.Next(ctx(t)); err != io.EOF {
			t.Fatal(err)
		}
	}
	if r := e.Result(); r.Status != kernels.StatusOK {
		t.Fatalf("the end was acknowledged before it was left: %+v", r)
	}
	if err := k.AwaitAck(ctx(t), k.Last()); err != nil {
		t.Fatalf("acknowledged %d of %d", k.Acked(), k.Last())
	}
	if _, ok := c.Execution(e.ID()); ok {
		t.Fatal("an execution that was left is still held")
	}
}

func TestNextAcknowledgesEarlierEnds(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	for range 3 {
		run(t, c, "1+1")
	}
	forgotten := execute(t, c, "count 10")
	forgotten.Forget()
	e := execute(t, c, "print a\nwait")
	next(t, e, "stdout:a")
	seq := k.Last()
	if err := c.Interrupt(ctx(t)); err != nil {
		t.Fatal(err)
	}
	next(t, e, "error:KeyboardInterrupt")
	if err := k.AwaitAck(ctx(t), seq); err != nil {
		t.Fatalf("acknowledged %d, want %d", k.Acked(), seq)
	}
}

// What a flood has left in the shim's journal is gone before the next execution, whose output would be left out.
func TestFloodIsAcknowledgedBeforeTheNext(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	for range 5 {
		flood := execute(t, c, "flood 4000000")
		read(t, flood)
		if _, err := flood.Next(ctx(t)); err != io.EOF { // its end is left
			t.Fatal(err)
		}
		produced := k.Last()
		e := execute(t, c, "print a")
		next(t, e, "stdout:a")
		if acked := k.Acked(); acked+(1<<20)/(16<<10)+2 < produced { // what is left is a megabyte at most
			t.Fatalf("acknowledged %d of %d when the next one ran", acked, produced)
		}
		read(t, e)
	}
}

func TestGapIsToldAndEndsNothing(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{Grace: 50 * time.Millisecond})
	e := execute(t, c, "print a\nsleep 50ms\ncount 100")
	a, err := e.Next(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := k.AwaitLast(ctx(t), a.Seq+102); err != nil { // the count, reply and idle
		t.Fatal(err)
	}
	k.LoseJournal()

	c = connect(t, k, kernels.Options{Adopt: []string{e.ID()}, Grace: 50 * time.Millisecond})
	e, _ = c.Execution(e.ID())
	outs := read(t, e)
	if len(outs) == 0 || outs[0].Notice == nil || outs[0].Notice.Gap == nil || e.Result().Status != kernels.StatusIncomplete {
		t.Fatalf("got %q, %+v", briefs(outs), e.Result())
	}
	if got, _ := run(t, c, "1+1"); got != "execute_result:2" {
		t.Fatalf("afterwards: %q", got)
	}
}

// What was received over a connection that broke, and that nobody had dealt with yet, is still there for another client.
func TestRedialForgetsNothingUnread(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "count 20")
	<-e.Done()
	k.Hangup()
	if got, _ := run(t, c, "1+1"); got != "execute_result:2" { // over the next connection
		t.Fatal(got)
	}
	_ = c.Close()
	c = connect(t, k, kernels.Options{Adopt: []string{e.ID()}})
	e, _ = c.Execution(e.ID())
	if got := briefs(read(t, e)) + " | "; got != counted(20) || k.Dials() != 3 {
		t.Fatalf("got %q, %d connections", got, k.Dials())
	}
}

// An adopted execution whose end was acknowledged by nobody's fault is not waited for without end.
func TestAdoptWhatHasEnded(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{Adopt: []string{"long-gone"}, Grace: 50 * time.Millisecond})
	e, _ := c.Execution("long-gone")
	outs := read(t, e)
	if e.Result().Status != kernels.StatusIncomplete {
		t.Fatalf("got %q, %+v", briefs(outs), e.Result())
	}
}

// A request that a broken connection swallowed is not waited for without end, and said not to have run.
func TestRequestLostWithTheConnection(t *testing.T) {
	k := kernelstest.NewKernel(kernelstest.KernelOptions{})
	t.Cleanup(k.Close)
	c := connect(t, &swallower{Kernel: k, match: "print lost"}, kernels.Options{Grace: 50 * time.Millisecond})
	if got, _ := run(t, c, "1+1"); got != "execute_result:2" {
		t.Fatal(got)
	}
	e := execute(t, c, "print lost")
	outs := read(t, e)
	if r := e.Result(); r.Status != kernels.StatusIncomplete || !strings.Contains(r.Reason, "did not run") {
		t.Fatalf("got %q, %+v", briefs(outs), r)
	}
	if got, _ := run(t, c, "1+1"); got != "execute_result:2" {
		t.Fatal(got)
	}
}

func TestConnectRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  func(*stream.Welcome)
		o     kernels.Options
		wants string
	}{
		{"version", func(w *stream.Welcome) { w.Version = 99 }, kernels.Options{}, "version 99"},
		{"refused", func(w *stream.Welcome) { w.Error = "not you" }, kernels.Options{}, "not you"},
		{"another kernel", nil, kernels.Options{KernelID: "other"}, "another kernel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := kernelstest.NewKernel(kernelstest.KernelOptions{EditWelcome: tt.edit})
			defer k.Close()
			_, err := kernels.Connect(ctx(t), k, tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.wants) || fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// A shim that counts from the beginning again, as one that was started anew does, is not gone on with.
func TestShimThatLostItsPlace(t *testing.T) {
	var lost atomic.Bool
	k, c := start(t, kernelstest.KernelOptions{EditWelcome: func(w *stream.Welcome) {
		if lost.Load() {
			w.Next = 1
		}
	}}, kernels.Options{})
	run(t, c, "1+1")
	lost.Store(true)
	k.Hangup()
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "lost its place") {
		t.Fatalf("got %v", err)
	}
}

func TestRedialsUntilTheShimIsBack(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "print a\nwait")
	next(t, e, "stdout:a")
	k.Refuse(errors.New("not now"))
	k.Hangup()
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := c.Interrupt(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	k.Refuse(nil)
	if err := c.Interrupt(ctx(t)); err != nil {
		t.Fatal(err)
	}
	next(t, e, "error:KeyboardInterrupt")
	if asked := k.Asked(); !slices.Equal(asked, []stream.Op{stream.OpInterrupt}) {
		t.Fatalf("asked %v", asked)
	}
}

// awaitAck waits until the fake has been told that all up to seq was dealt with.
func awaitAck(t *testing.T, k *kernelstest.Kernel, seq uint64) {
	t.Helper()
	if err := k.AwaitAck(ctx(t), seq); err != nil {
		t.Fatal(err)
	}
}
