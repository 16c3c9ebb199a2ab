package storetest

import (
	"fmt"
	"strings"
	"testing"

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
	for _, c := range []struct{ from, limit, first, count int }{
		{1, 10, 1, 10}, {0, 3, 1, 3}, {-4, 2, 1, 2}, {16, 10, 16, 10}, {21, 10, 21, 5}, {26, 10, 0, 0}, {1, 0, 0, 0},
	} {
		got, err := s.Executions(t.Context(), ref, c.from, c.limit)
		if err != nil || len(got) != c.count || c.count > 0 && (got[0].Number != c.first || got[0].Code != fmt.Sprintf("cell %d", c.first)) {
			t.Errorf("from %d, %d: %+v, %v", c.from, c.limit, got, err)
		}
	}
}
