package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/sessions"
)

func testLife(t *testing.T, p Processes) {
	s := p.Start(t)
	created := time.Now()
	before, err := s.Open(t.Context(), sessions.StoredSession{Owner: alice, ID: "a", Language: "python", Created: created})
	if err != nil || before.Ref == 0 || before.Executions != 0 || !before.Closed.IsZero() || before.Held {
		t.Fatalf("a new session: %+v, %v", before, err)
	}
	q := queued(1)
	q.Restores, q.File, q.Args = 7, "a script.py", "--n '4 5'"
	began := sessions.ExecutionBegan{Number: 1, Generation: 1, Started: time.Now(), Preamble: "first this"}
	result := sessions.Result{
		Result: kernels.Result{
			Status: kernels.StatusError, ExecutionCount: 4, Started: time.Unix(1, 2).UTC(), Ended: time.Unix(3, 4).UTC(), CPU: 5, PeakMemory: 6, OOMKills: 7,
			Error: &kernels.ExecError{Name: "KeyError", Value: "'x'", Traceback: []string{"a", "b"}},
			Death: &kernels.Death{Cause: "out of memory", OOM: true, Exit: &stream.Exit{Code: -1, Signal: "SIGKILL"}},
		},
		TimedOut: true, Duration: 3 * time.Second, Overrun: 5 << 30, Interrupt: sessions.InterruptReport{Ran: true, Rung: "restart", Caller: "claude"},
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
		Number: 1, Generation: 1, MsgID: q.MsgID, Code: q.Code, File: "a script.py", Args: q.Args, Caller: q.Caller, Timeout: q.Timeout, Restores: 7, Preamble: "first this",
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
	last := sessions.StoredCell{Code: "cell 2", File: "work.py", Args: "--n 4", Caller: "a test"}
	if all, err := s.Sessions(t.Context(), alice); err != nil || len(all) != 1 || all[0].Ref != before.Ref || all[0].Last != last {
		t.Errorf("the list is %+v, %v", all, err)
	}
	generations, err := s.Generations(t.Context(), before.Ref)
	if err != nil || len(generations) != 1 {
		t.Fatalf("generations: %+v, %v", generations, err)
	}
	if g := generations[0]; g.Number != 1 || !reflect.DeepEqual(g.Ref, generation(1).Ref) || g.Why != "it was stopped" || g.Seq != 2 {
		t.Errorf("the generation is %+v", g)
	}
	sameTime(t, "the generation's end", generations[0].Ended, closed)
	wantKind(t, "a change after the close", s.Commit(t.Context(), before.Ref, queued(3)), fault.Conflict)
	if u, err := s.Usage(t.Context()); err != nil || u.Disk < e.Bytes || u != (sessions.Usage{Sessions: 1, Executions: 2, Bytes: e.Bytes, Disk: u.Disk}) {
		t.Errorf("Usage: %+v, %v", u, err)
	}
	if err := s.Health(); err != nil {
		t.Errorf("Health: %v", err)
	}
}

// testChoice looks for profile and image wherever a session is told of: as they were when it was opened last.
func testChoice(t *testing.T, p Processes) {
	s := p.Start(t)
	want := sessions.StoredSession{Owner: alice, ID: "a", Language: "python", Profile: "large", Image: "derived-1", Created: time.Now()}
	for range 2 {
		opened, err := s.Open(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, opened.Ref, generation(opened.Generations+1))
		one, err := s.Session(t.Context(), alice, "a")
		all, allErr := s.Sessions(t.Context(), alice)
		running, runningErr := s.Running(t.Context())
		if err != nil || allErr != nil || runningErr != nil || len(all) != 1 || len(running) != 1 {
			t.Fatalf("%v, %v, %v: %+v, %+v", err, allErr, runningErr, all, running)
		}
		for _, got := range []sessions.StoredSession{one, all[0], running[0].Session} {
			if got.Profile != want.Profile || got.Image != want.Image {
				t.Errorf("it is told as %+v, want %+v", got, want)
			}
		}
		want.Profile, want.Image = "session", ""
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
		{Kind: kernels.OutputAnswer, Password: true, Time: at}, {Kind: kernels.OutputAnswer, Text: "yes", Time: at},
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
	if part := outputs(t, s, ref, 1, 10); len(part) != 3 || part[0].Index != 10 {
		t.Errorf("from index 10 on there are %d", len(part))
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
