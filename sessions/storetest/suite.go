package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/sessions"
)

// Processes is one disk and whoever works on it. A store's tests say how to make them.
type Processes interface {
	// Start returns the store of a process that starts on the disk.
	Start(t *testing.T) sessions.Store
	// Kill ends a process without a chance to tidy up. The process that starts next may take its place.
	Kill(t *testing.T, s sessions.Store)
}

var (
	alice = sessions.Owner{Issuer: "https://a", Subject: "alice"}
	bob   = sessions.Owner{Issuer: "https://a", Subject: "bob"}
)

// Run checks that a store does what sessions.Store promises. disk makes a new, empty one for each test.
func Run(t *testing.T, disk func(t *testing.T) Processes) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Processes)
	}{
		{"a life is told as it was", testLife},
		{"outputs come back as they were", testFaithful},
		{"what is there stays over a restart", testRestart},
		{"a killed process loses nothing committed", testKilled},
		{"one process at a time", testClaims},
		{"numbers are given once", testNumbers},
		{"a commit is all or nothing", testAtomic},
		{"owners are apart", testOwners},
		{"holes", testHoles},
		{"deleted is gone", testDelete},
		{"writers side by side", testConcurrent},
		{"reading while it is written", testReadWhileWritten},
		{"pages of executions", testPages},
		{"the end of a wait", testContext},
		{"kernels whose end is not written down", testRunning},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, disk(t)) })
	}
}

// open is Open that must succeed.
func open(t *testing.T, s sessions.Store, o sessions.Owner, id string) sessions.StoredSession {
	t.Helper()
	found, err := s.Open(t.Context(), sessions.StoredSession{Owner: o, ID: id, Language: "python", Created: time.Now()})
	if err != nil {
		t.Fatalf("Open(%s): %v", id, err)
	}
	return found
}

// commit is Commit that must succeed.
func commit(t *testing.T, s sessions.Store, ref sessions.SessionRef, changes ...sessions.Change) {
	t.Helper()
	if err := s.Commit(t.Context(), ref, changes...); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func queued(n int) sessions.ExecutionQueued {
	return sessions.ExecutionQueued{
		Number: n, MsgID: fmt.Sprintf("m-%d", n), Code: fmt.Sprintf("cell %d", n), Caller: "a test", Timeout: time.Minute, Queued: time.Now(),
	}
}

// cell is the changes of a cell that was queued, runs in generation 1 and printed some lines.
func cell(n int, lines ...string) []sessions.Change {
	return []sessions.Change{
		queued(n), sessions.ExecutionBegan{Number: n, Generation: 1, Started: time.Now()}, printed(n, 0, lines...),
	}
}

func printed(n, first int, lines ...string) sessions.OutputsKept {
	kept := sessions.OutputsKept{Number: n, First: first}
	for i, line := range lines {
		kept.Outputs = append(kept.Outputs, kernels.Output{
			Kind: kernels.OutputStream, Stream: "stdout", Text: line, Seq: uint64(first + i + 1), Time: time.Unix(1700000000, int64(i)).UTC(),
		})
	}
	return kept
}

func generation(n int) sessions.GenerationBegan {
	return sessions.GenerationBegan{Number: n, Started: time.Now(), Ref: kernels.Ref{
		Provisioner: "local", Version: 3, KernelID: fmt.Sprintf("kernel%d", n), Data: json.RawMessage(`{"pid":7}`),
	}}
}

// outputs reads an execution's outputs from an index on.
func outputs(t *testing.T, s sessions.Store, ref sessions.SessionRef, number, from int) (outs []sessions.StoredOutput) {
	t.Helper()
	for out, err := range s.Outputs(t.Context(), ref, number, from) {
		if err != nil {
			t.Fatalf("output %d of execution %d: %v", out.Index, number, err)
		}
		outs = append(outs, out)
	}
	return outs
}

func text(outs []sessions.StoredOutput) string {
	var b strings.Builder
	for _, out := range outs {
		b.WriteString(out.Output.Text)
		if out.Output.Notice != nil {
			b.WriteString("<" + out.Output.Notice.String() + ">")
		}
	}
	return b.String()
}

func wantText(t *testing.T, s sessions.Store, ref sessions.SessionRef, number int, want string) {
	t.Helper()
	if got := text(outputs(t, s, ref, number, 0)); got != want {
		t.Errorf("execution %d printed %q, want %q", number, got, want)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%s: %v, want an error of kind %v", what, err, kind)
	}
}

// same compares times by instant and the rest by value.
func sameTime(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func testLife(t *testing.T, p Processes) {
	s := p.Start(t)
	created := time.Now()
	before, err := s.Open(t.Context(), sessions.StoredSession{Owner: alice, ID: "a", Language: "python", Created: created})
	if err != nil || before.Ref == 0 || before.Executions != 0 || !before.Closed.IsZero() || before.Held {
		t.Fatalf("a new session: %+v, %v", before, err)
	}
	q := queued(1)
	q.Restores = 7
	began := sessions.ExecutionBegan{Number: 1, Generation: 1, Started: time.Now(), Preamble: "first this"}
	result := sessions.Result{
		Result: kernels.Result{
			Status: kernels.StatusError, ExecutionCount: 4, Started: time.Unix(1, 2).UTC(), Ended: time.Unix(3, 4).UTC(),
			Error: &kernels.ExecError{Name: "KeyError", Value: "'x'", Traceback: []string{"a", "b"}},
			Death: &kernels.Death{Cause: "out of memory", OOM: true, Exit: &stream.Exit{Code: -1, Signal: "SIGKILL"}},
		},
		TimedOut: true, Duration: 3 * time.Second, Overrun: 5 << 30, Interrupt: sessions.InterruptReport{Ran: true, Rung: "restart"},
	}
	ended := sessions.ExecutionEnded{Number: 1, Ended: time.Now(), Result: result, Own: 2}
	commit(t, s, before.Ref, generation(1), sessions.WorkspaceGiven{Name: "w1"}, q, began, printed(1, 0, "a\n", "b\n"))
	commit(t, s, before.Ref, ended, printed(1, 2, "late\n"), queued(2),
		sessions.ExecutionEnded{Number: 2, Ended: time.Now(), Failure: fault.New(fault.Cancelled, "given up").WithHint("try")})

	e, err := s.Execution(t.Context(), before.Ref, 1)
	if err != nil {
		t.Fatal(err)
	}
	sameTime(t, "queued", e.Queued, q.Queued)
	sameTime(t, "started", e.Started, began.Started)
	sameTime(t, "ended", e.Ended, ended.Ended)
	if e.Bytes <= 0 {
		t.Errorf("its outputs have %d bytes", e.Bytes)
	}
	want := sessions.StoredExecution{
		Number: 1, Generation: 1, MsgID: q.MsgID, Code: q.Code, Caller: q.Caller, Timeout: q.Timeout, Restores: 7, Preamble: "first this",
		Queued: e.Queued, Started: e.Started, Ended: e.Ended, Result: result, Outputs: 3, Own: 2, Bytes: e.Bytes,
	}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("execution 1 is\n%+v, want\n%+v", e, want)
	}
	second, err := s.Execution(t.Context(), before.Ref, 2)
	if err != nil || second.Failure == nil || second.Failure.Kind != fault.Cancelled || second.Failure.Message != "given up" ||
		second.Failure.Hint != "try" || !second.Started.IsZero() {
		t.Errorf("execution 2: %+v, %v", second, err)
	}
	_, err = s.Execution(t.Context(), before.Ref, 3)
	wantKind(t, "an execution that is not there", err, fault.NotFound)

	closed := time.Now()
	commit(t, s, before.Ref, sessions.GenerationEnded{Number: 1, Ended: closed, Why: "it was stopped"},
		sessions.SessionClosed{Closed: closed, Why: "nobody used it"})
	after, err := s.Session(t.Context(), alice, "a")
	if err != nil || after.Ref != before.Ref || after.Workspace != "w1" || after.Language != "python" || after.Executions != 2 ||
		after.Generations != 1 || after.Why != "nobody used it" || after.Held || after.Bytes != e.Bytes || after.Used.Before(created) {
		t.Errorf("the session is %+v, %v", after, err)
	}
	sameTime(t, "created", after.Created, created)
	sameTime(t, "closed", after.Closed, closed)
	generations, err := s.Generations(t.Context(), before.Ref)
	if err != nil || len(generations) != 1 {
		t.Fatalf("generations: %+v, %v", generations, err)
	}
	if g := generations[0]; g.Number != 1 || !reflect.DeepEqual(g.Ref, generation(1).Ref) || g.Why != "it was stopped" || g.Seq != 2 {
		t.Errorf("the generation is %+v", g)
	}
	sameTime(t, "the generation's end", generations[0].Ended, closed)
	wantKind(t, "a change after the close", s.Commit(t.Context(), before.Ref, queued(3)), fault.Conflict)
	if u, err := s.Usage(t.Context()); err != nil || u != (sessions.Usage{Sessions: 1, Executions: 2, Bytes: e.Bytes}) {
		t.Errorf("Usage: %+v, %v", u, err)
	}
	if err := s.Health(); err != nil {
		t.Errorf("Health: %v", err)
	}
}

func testFaithful(t *testing.T, p Processes) {
	s := p.Start(t)
	noise := make([]byte, 300<<10)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise)
	large, _ := json.Marshal(noise)
	at := time.Unix(1700000000, 123456789).UTC()
	outs := []kernels.Output{
		{Kind: kernels.OutputStream, Stream: "stderr", Text: "e\x00é\u2028\r\x1b[0m", Seq: 7, Time: at},
		{Kind: kernels.OutputDisplay, Seq: 1<<63 + 5, Time: at, DisplayID: "d", Data: map[string]json.RawMessage{
			"image/png": large, "text/plain": json.RawMessage(`"<Figure \u003c>"`), "application/x+json": json.RawMessage("{ \"a\": 1e999 }"),
		}, Metadata: json.RawMessage(`{"a": 1}`)},
		{Kind: kernels.OutputUpdate, DisplayID: "d", Data: map[string]json.RawMessage{"image/png": large}, Time: at},
		{Kind: kernels.OutputResult, ExecutionCount: 3, Data: map[string]json.RawMessage{}, Time: at},
		{Kind: kernels.OutputError, Error: &kernels.ExecError{Name: "E", Traceback: []string{"\x1b[31m", ""}}, Time: at},
		{Kind: kernels.OutputClear, Wait: true},
		{Kind: kernels.OutputInput, Text: "Password: ", Password: true, Time: at},
		{Kind: kernels.OutputNotice, Notice: &kernels.Notice{Gap: &stream.Gap{From: 1, To: 2, Bytes: 3}}, Time: at},
		{Kind: kernels.OutputOther, Type: "comm_open", Content: json.RawMessage(`{"comm_id":"x"}`), Time: at},
		{Kind: kernels.OutputStream, Stream: "stdout", Text: strings.Repeat("long ", 100_000), Time: at},
		{Kind: kernels.OutputStream, Stream: "stdout", Time: at},
	}
	ref := open(t, s, alice, "a").Ref
	commit(t, s, ref, append(cell(1), sessions.OutputsKept{Number: 1, Outputs: outs})...)
	got := outputs(t, s, ref, 1, 0)
	if len(got) != len(outs) {
		t.Fatalf("%d outputs came back of %d", len(got), len(outs))
	}
	for i, out := range outs {
		if got[i].Index != i || !reflect.DeepEqual(got[i].Output, out) {
			t.Errorf("output %d came back as %.300s, want %.300s", i, fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", out))
		}
	}
	if part := outputs(t, s, ref, 1, 8); len(part) != 3 || part[0].Index != 8 {
		t.Errorf("from index 8 on there are %d", len(part))
	}
}

func testRestart(t *testing.T, p Processes) {
	first := p.Start(t)
	ref := open(t, first, alice, "a").Ref
	commit(t, first, ref, append([]sessions.Change{generation(1)}, cell(1, "one\n")...)...)
	if err := first.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	second := p.Start(t)
	found := open(t, second, alice, "a")
	if found.Ref != ref || found.Executions != 1 || found.Generations != 1 || found.Held {
		t.Errorf("after the restart it is %+v", found)
	}
	wantText(t, second, ref, 1, "one\n")
	commit(t, second, ref, append([]sessions.Change{generation(2)}, cell(2, "two\n")...)...)
	wantText(t, second, ref, 2, "two\n")
}

func testKilled(t *testing.T, p Processes) {
	first := p.Start(t)
	ref := open(t, first, alice, "a").Ref
	commit(t, first, ref, append([]sessions.Change{generation(1)}, cell(1, "one\n", "two\n")...)...)
	commit(t, first, ref, queued(2))
	p.Kill(t, first)
	second := p.Start(t)
	left, err := second.Session(t.Context(), alice, "a")
	if err != nil || left.Held || !left.Closed.IsZero() || left.Executions != 2 {
		t.Errorf("what is left is %+v, %v", left, err)
	}
	wantText(t, second, ref, 1, "one\ntwo\n")
	found := open(t, second, alice, "a")
	if found.Ref != ref || found.Executions != 2 {
		t.Errorf("opened again it is %+v", found)
	}
	running, err := second.Execution(t.Context(), ref, 1)
	if err != nil || !running.Ended.IsZero() || running.Started.IsZero() {
		t.Errorf("the execution that ran is %+v, %v", running, err)
	}
	commit(t, second, ref, printed(1, 2, "three\n"), sessions.ExecutionEnded{Number: 1, Ended: time.Now(), Own: 3})
	wantText(t, second, ref, 1, "one\ntwo\nthree\n")
}

func testClaims(t *testing.T, p Processes) {
	first, second := p.Start(t), p.Start(t)
	ref := open(t, first, alice, "a").Ref
	commit(t, first, ref, cell(1, "x")...)
	if again := open(t, first, alice, "a"); again.Ref != ref || !again.Held {
		t.Errorf("opened again by its own process it is %+v", again)
	}
	_, err := second.Open(t.Context(), sessions.StoredSession{Owner: alice, ID: "a", Language: "python", Created: time.Now()})
	wantKind(t, "opening what another process has", err, fault.Conflict)
	wantKind(t, "changing it", second.Commit(t.Context(), ref, queued(2)), fault.Conflict)
	wantKind(t, "deleting it", second.Delete(t.Context(), alice, "a"), fault.Conflict)
	if seen, err := second.Session(t.Context(), alice, "a"); err != nil || !seen.Held {
		t.Errorf("seen by the other it is %+v, %v", seen, err)
	}
	wantText(t, second, ref, 1, "x")
	commit(t, first, ref, sessions.SessionClosed{Closed: time.Now(), Why: "done"})
	open(t, second, alice, "a")
	wantKind(t, "changing what was given up", first.Commit(t.Context(), ref, queued(2)), fault.Conflict)
	commit(t, second, ref, queued(2))
}

func testNumbers(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	commit(t, s, ref, append([]sessions.Change{generation(1)}, cell(1, "one\n")...)...)
	for what, change := range map[string]sessions.Change{
		"a number that is taken":              queued(1),
		"a generation that is there":          generation(1),
		"an output that is there":             printed(1, 0, "again"),
		"an output of no execution":           printed(9, 0, "x"),
		"the end of what is not there":        sessions.ExecutionEnded{Number: 9, Ended: time.Now()},
		"the beginning of what is not there ": sessions.ExecutionBegan{Number: 9, Generation: 1, Started: time.Now()},
	} {
		wantKind(t, what, s.Commit(t.Context(), ref, change), fault.Conflict)
	}
	wantKind(t, "a session that never was", s.Commit(t.Context(), ref+99, queued(1)), fault.Conflict)
	wantText(t, s, ref, 1, "one\n")
	if err := s.Health(); err != nil {
		t.Errorf("contradictions are no trouble of the store's, but Health is %v", err)
	}
}

func testAtomic(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	commit(t, s, ref, cell(1, "one\n")...)
	before, _ := s.Session(t.Context(), alice, "a")
	err := s.Commit(t.Context(), ref, append(cell(2, "two\n"), printed(1, 1, "more"), queued(1))...)
	wantKind(t, "a commit whose last change contradicts", err, fault.Conflict)
	if _, err := s.Execution(t.Context(), ref, 2); fault.KindOf(err) != fault.NotFound {
		t.Errorf("its first change was made: %v", err)
	}
	wantText(t, s, ref, 1, "one\n")
	if after, _ := s.Session(t.Context(), alice, "a"); after.Bytes != before.Bytes || after.Executions != 1 {
		t.Errorf("the session became %+v", after)
	}
}

func testOwners(t *testing.T, p Processes) {
	s := p.Start(t)
	a, b := open(t, s, alice, "x").Ref, open(t, s, bob, "x").Ref
	other := open(t, s, sessions.Owner{Issuer: "https://b", Subject: "alice"}, "x").Ref
	if a == b || a == other || b == other {
		t.Fatal("sessions of several owners are one")
	}
	commit(t, s, a, cell(1, "alice")...)
	commit(t, s, b, cell(1, "bob")...)
	open(t, s, alice, "y")
	wantText(t, s, a, 1, "alice")
	wantText(t, s, b, 1, "bob")
	list, err := s.Sessions(t.Context(), bob)
	if err != nil || len(list) != 1 || list[0].Ref != b || list[0].Owner != bob || !list[0].Held {
		t.Errorf("bob's sessions are %+v, %v", list, err)
	}
	if list, _ := s.Sessions(t.Context(), alice); len(list) != 2 {
		t.Errorf("alice has %d sessions", len(list))
	}
	_, err = s.Session(t.Context(), bob, "y")
	wantKind(t, "bob looks for alice's", err, fault.NotFound)
}

func testHoles(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	commit(t, s, ref, cell(1, "0", "1", "2", "3", "4", "5")...)
	note := func(n int64) kernels.Output {
		return kernels.Output{Kind: kernels.OutputNotice, Notice: &kernels.Notice{Elided: &stream.Elided{Messages: n}}}
	}
	full := outputs(t, s, ref, 1, 0)
	before, _ := s.Execution(t.Context(), ref, 1)
	commit(t, s, ref, sessions.OutputsKept{Number: 1, First: 6, Hole: &sessions.Hole{From: 2, To: 4, Notices: []kernels.Output{note(2)}}})
	wantText(t, s, ref, 1, "01<"+note(2).Notice.String()+">45")
	change := printed(1, 8, "8", "9")
	change.Hole = &sessions.Hole{From: 2, To: 8, Notices: []kernels.Output{note(5), note(6)}}
	commit(t, s, ref, change)
	wantText(t, s, ref, 1, "01<"+note(5).Notice.String()+"><"+note(6).Notice.String()+">89")
	got := outputs(t, s, ref, 1, 1)
	if len(got) != 5 || got[1].Index != 2 || got[3].Index != 8 || len(full) != 6 {
		t.Errorf("the indices around the hole are %+v", got)
	}
	after, err := s.Execution(t.Context(), ref, 1)
	if err != nil || after.Outputs != 10 || after.Bytes <= 0 || after.Bytes > 20*before.Bytes {
		t.Errorf("the execution is %+v, %v", after, err)
	}
}

func testDelete(t *testing.T, p Processes) {
	s := p.Start(t)
	keep := open(t, s, alice, "b").Ref
	ref := open(t, s, alice, "a").Ref // the newest, whose name must not be used again either
	shared := sessions.OutputsKept{Number: 1, Outputs: []kernels.Output{
		{Kind: kernels.OutputStream, Stream: "stdout", Text: strings.Repeat("large ", 50_000)},
	}}
	for _, r := range []sessions.SessionRef{ref, keep} {
		commit(t, s, r, append(cell(1), shared)...)
	}
	many := make([]string, 5000)
	for i := range many {
		many[i] = "line\n"
	}
	commit(t, s, ref, append(cell(2, many...), generation(1))...)
	if err := s.Delete(t.Context(), alice, "a"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if err := s.Delete(t.Context(), alice, "a"); err != nil {
		t.Errorf("Delete again: %v", err)
	}
	_, err := s.Session(t.Context(), alice, "a")
	wantKind(t, "a deleted session", err, fault.NotFound)
	wantKind(t, "changing it", s.Commit(t.Context(), ref, queued(3)), fault.Conflict)
	if outs := outputs(t, s, ref, 2, 0); len(outs) != 0 {
		t.Errorf("%d of its outputs are still there", len(outs))
	}
	if u, _ := s.Usage(t.Context()); u.Sessions != 1 || u.Executions != 1 {
		t.Errorf("what is used is %+v", u)
	}
	wantText(t, s, keep, 1, shared.Outputs[0].Text)
	again := open(t, s, alice, "a")
	if again.Ref == ref || again.Executions != 0 || again.Generations != 0 {
		t.Errorf("the next session of that id begins as %+v", again)
	}
	commit(t, s, again.Ref, append(cell(1), shared)...)
	wantText(t, s, again.Ref, 1, shared.Outputs[0].Text)
}

func testConcurrent(t *testing.T, p Processes) {
	stores := []sessions.Store{p.Start(t), p.Start(t)}
	const writers, rounds = 8, 40
	refs := make([]sessions.SessionRef, writers)
	var wg sync.WaitGroup
	for w := range writers {
		s := stores[w%len(stores)]
		refs[w] = open(t, s, alice, fmt.Sprintf("s%d", w)).Ref
		wg.Go(func() {
			if err := s.Commit(t.Context(), refs[w], cell(1)...); err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
			for i := range rounds {
				if err := s.Commit(t.Context(), refs[w], printed(1, i, fmt.Sprintf("%d.%d;", w, i))); err != nil {
					t.Errorf("writer %d, round %d: %v", w, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		var want strings.Builder
		for i := range rounds {
			fmt.Fprintf(&want, "%d.%d;", w, i)
		}
		wantText(t, stores[0], refs[w], 1, want.String())
	}
}

func testReadWhileWritten(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	lines := bytes.Split(bytes.Repeat([]byte("x;"), 2500), []byte(";"))
	var first []string
	for i := range lines {
		first = append(first, fmt.Sprintf("%d\n", i))
	}
	commit(t, s, ref, cell(1, first...)...)
	next := 0
	for out, err := range s.Outputs(t.Context(), ref, 1, 0) {
		if err != nil || out.Index != next {
			t.Fatalf("output %d: %+v, %v", next, out.Index, err)
		}
		if next == 10 {
			commit(t, s, ref, printed(1, len(first), "the last\n"))
		}
		next++
	}
	if next < len(first) {
		t.Errorf("%d outputs were read of %d", next, len(first))
	}
}

func testPages(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	for n := 1; n <= 25; n++ {
		commit(t, s, ref, queued(n))
	}
	for _, c := range []struct{ from, limit, first, count int }{
		{1, 10, 1, 10}, {0, 3, 1, 3}, {-4, 2, 1, 2}, {16, 10, 16, 10}, {21, 10, 21, 5}, {26, 10, 0, 0}, {1, 0, 0, 0},
	} {
		got, err := s.Executions(t.Context(), ref, c.from, c.limit)
		if err != nil || len(got) != c.count || c.count > 0 && (got[0].Number != c.first || got[0].Code != fmt.Sprintf("cell %d", c.first)) {
			t.Errorf("from %d, %d: %+v, %v", c.from, c.limit, got, err)
		}
	}
}

func testContext(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := s.Commit(ctx, ref, queued(1)); err != nil && fault.KindOf(err) == fault.Unavailable {
		t.Errorf("a caller who gives up is told %v", err)
	}
	commit(t, s, ref, queued(2))
	if err := s.Health(); err != nil {
		t.Errorf("Health after a caller gave up: %v", err)
	}
}
