package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/sessions"
)

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

// testTogether commits the same changes at once, one by one, and in every two parts: what is there in the end is the same.
func testTogether(t *testing.T, p Processes) {
	s := p.Start(t)
	began := generation(1)
	changes := append([]sessions.Change{began}, cell(1, "one", "two")...)
	changes = append(changes, ended(1, 2), printed(1, 2, "late"), queued(2), queued(3), sessions.ExecutionBegan{Number: 2, Generation: 1, Started: time.Now()},
		printed(2, 0, "x"), ended(2, 1), ended(3, 0))
	whole := open(t, s, alice, "whole").Ref
	commit(t, s, whole, changes...)
	want := keptOf(t, s, "whole", whole, 3)
	apart := open(t, s, alice, "apart").Ref
	for _, change := range changes {
		commit(t, s, apart, change)
	}
	if got := keptOf(t, s, "apart", apart, 3); !reflect.DeepEqual(got, want) {
		t.Errorf("one by one:\n%+v\nwant\n%+v", got, want)
	}
	for cut := 1; cut < len(changes); cut++ {
		id := fmt.Sprintf("cut-%d", cut)
		ref := open(t, s, alice, id).Ref
		commit(t, s, ref, changes[:cut]...)
		commit(t, s, ref, changes[cut:]...)
		if got := keptOf(t, s, id, ref, 3); !reflect.DeepEqual(got, want) {
			t.Errorf("cut at %d:\n%+v\nwant\n%+v", cut, got, want)
		}
	}
}

func ended(n, own int) sessions.ExecutionEnded {
	return sessions.ExecutionEnded{
		Number: n, Ended: time.Unix(1700000100, 0).UTC(), Own: own, Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}},
	}
}

// keptOf is what there is of a session's cells, and how far its last kernel's outputs are committed.
func keptOf(t *testing.T, s sessions.Store, id string, ref sessions.SessionRef, cells int) (kept []any) {
	t.Helper()
	for n := 1; n <= cells; n++ {
		e, err := s.Execution(t.Context(), ref, n)
		if err != nil {
			t.Fatalf("cell %d of %s: %v", n, id, err)
		}
		kept = append(kept, e, outputs(t, s, ref, n, 0))
	}
	session, err := s.Session(t.Context(), alice, id)
	if err != nil {
		t.Fatal(err)
	}
	generations, err := s.Generations(t.Context(), ref)
	if err != nil || len(generations) != 1 {
		t.Fatalf("generations of %s: %+v, %v", id, generations, err)
	}
	return append(kept, session.Executions, session.Bytes, generations[0].Seq)
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
	// What went may be the end, too.
	change = sessions.OutputsKept{Number: 1, First: 12, Hole: &sessions.Hole{From: 2, To: 12, Notices: []kernels.Output{note(9)}}}
	commit(t, s, ref, change)
	wantText(t, s, ref, 1, "01<"+note(9).Notice.String()+">")
	if after, err = s.Execution(t.Context(), ref, 1); err != nil || after.Outputs != 12 {
		t.Errorf("without its end the execution is %+v, %v", after, err)
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

func testPages(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	for n := 1; n <= 25; n++ {
		commit(t, s, ref, queued(n))
	}
	for _, c := range []struct{ from, limit, code, first, count int }{
		{1, 10, 0, 1, 10}, {0, 3, 0, 1, 3}, {-4, 2, 0, 1, 2}, {16, 10, 0, 16, 10}, {21, 10, 0, 21, 5}, {26, 10, 0, 0, 0}, {1, 0, 0, 0, 0},
		{1, 10, 1, 1, 1}, {11, 10, 14, 11, 2}, {11, 10, 15, 11, 3}, {11, 2, 15, 11, 2}, {11, 20, 1000, 11, 15}, // each has seven bytes
	} {
		got, err := s.Executions(t.Context(), ref, c.from, c.limit, int64(c.code))
		if err != nil || len(got) != c.count || c.count > 0 && (got[0].Number != c.first || got[0].Code != fmt.Sprintf("cell %d", c.first)) {
			t.Errorf("from %d, %d: %+v, %v", c.from, c.limit, got, err)
		}
	}
}

func testFind(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	for n := 1; n <= 4; n++ {
		commit(t, s, ref, cell(n, "text")...)
		commit(t, s, ref, sessions.OutputsKept{Number: n, First: 1, Outputs: []kernels.Output{
			{Kind: kernels.OutputUpdate, DisplayID: fmt.Sprint("d", n), Data: map[string]json.RawMessage{"text/plain": json.RawMessage(`"small"`)}},
			{Kind: kernels.OutputUpdate, DisplayID: fmt.Sprint("e", n), Data: map[string]json.RawMessage{"text/plain": json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)}},
		}})
	}
	commit(t, s, open(t, s, bob, "a").Ref, cell(1, "other")...)
	for name, tt := range map[string]struct {
		q    sessions.OutputQuery
		want string
	}{
		"all":       {sessions.OutputQuery{Kind: kernels.OutputUpdate, From: 1, To: 4, Limit: 100}, "4.2 e4, 4.1 d4, 3.2 e3, 3.1 d3, 2.2 e2, 2.1 d2, 1.2 e1, 1.1 d1"},
		"the last":  {sessions.OutputQuery{Kind: kernels.OutputUpdate, From: 1, To: 4, Limit: 3}, "4.2 e4, 4.1 d4, 3.2 e3"},
		"some":      {sessions.OutputQuery{Kind: kernels.OutputUpdate, From: 2, To: 2, Limit: 100}, "2.2 e2, 2.1 d2"},
		"any kind":  {sessions.OutputQuery{From: 2, To: 2, Limit: 3}, "2.2 e2, 2.1 d2, 2.0 "},
		"large":     {sessions.OutputQuery{Kind: kernels.OutputUpdate, From: 1, To: 2, Size: 50_000, Limit: 100}, "2.2 e2, 1.2 e1"},
		"no such":   {sessions.OutputQuery{Kind: kernels.OutputError, From: 1, To: 4, Limit: 100}, ""},
		"no cells":  {sessions.OutputQuery{Kind: kernels.OutputUpdate, From: 5, To: 9, Limit: 100}, ""},
		"no output": {sessions.OutputQuery{Kind: kernels.OutputUpdate, From: 1, To: 4}, ""},
	} {
		var got []string
		for out, err := range s.FindOutputs(t.Context(), ref, tt.q) {
			got = append(got, fmt.Sprintf("%d.%d %s", out.Number, out.Index, out.Output.DisplayID))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, ", "), tt.want)
		}
	}
}
