package sessions

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

func TestComplete(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	execute(t, m, alice, "s", "x")
	c, err := m.Complete(t.Context(), alice, "s", "dañ", 3)
	if err != nil || len(c.Matches) != 1 || c.Matches[0] != (Match{"dañ!", "function"}) || c.Start != 0 || c.End != 3 {
		t.Errorf("%+v %v", c, err)
	}
	help, err := m.Inspect(t.Context(), alice, "s", "len", 3)
	if err != nil || help != "\x1b[31mlen" {
		t.Errorf("%q %v", help, err)
	}
	for _, tt := range []struct {
		owner  Owner
		code   string
		cursor int
		kind   fault.Kind
	}{
		{bob, "x", 1, fault.NotFound},
		{alice, "x", 2, fault.Invalid},
		{alice, "x", -1, fault.Invalid},
		{alice, "x\x00", 1, fault.Invalid},
		{alice, strings.Repeat("x", MaxCode+1), 1, fault.Invalid},
	} {
		if _, err := m.Complete(t.Context(), tt.owner, "s", tt.code, tt.cursor); fault.KindOf(err) != tt.kind {
			t.Errorf("Complete(%.10q, %d): %v, want %s", tt.code, tt.cursor, err, tt.kind)
		}
	}
}

// A cell that runs is not disturbed, and nobody waits for its end.
func TestCompleteWhileACellRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		e := start(t, m, alice, python("s", "sleep 1h"))
		synctest.Wait()
		began := time.Now()
		if _, err := m.Complete(t.Context(), alice, "s", "x", 1); fault.KindOf(err) != fault.Busy || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := m.Inspect(t.Context(), alice, "s", "x", 1); fault.KindOf(err) != fault.Busy {
			t.Errorf("%v", err)
		}
		if phase, _ := e.Phase(); phase != PhaseRunning || p.last().interrupts.Load() != 0 {
			t.Errorf("the cell is %s", phase)
		}
		e.Cancel()
	})
}

// A kernel that does not answer is interrupted, and runs the next cell.
func TestCompleteWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		execute(t, m, alice, "s", "x")
		began := time.Now()
		if _, err := m.Complete(t.Context(), alice, "s", "hang", 4); fault.KindOf(err) != fault.Timeout || time.Since(began) != assistTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if n := p.last().interrupts.Load(); n != 1 {
			t.Errorf("%d interrupts", n)
		}
		execute(t, m, alice, "s", "y")
	})
}

// What a kernel answers may be anything.
func FuzzCompletion(f *testing.F) {
	f.Add([]byte(`{"matches":["print"],"cursor_start":0,"cursor_end":4,"metadata":{"_jupyter_types_experimental":[{"text":"print","type":"function"}]}}`), "prin")
	f.Add([]byte(`{"matches":[""],"cursor_start":9,"cursor_end":-4,"metadata":[]}`), "é")
	f.Fuzz(func(t *testing.T, raw []byte, code string) {
		var c kernels.Completion
		if json.Unmarshal(raw, &c) != nil {
			return
		}
		fit := completionOf(c, code)
		if fit.Start < 0 || fit.Start > fit.End || fit.End > utf8.RuneCountInString(code) || len(fit.Matches) > maxMatches {
			t.Errorf("%+v of %q", fit, code)
		}
		if len(fit.Matches)+fit.More > len(c.Matches) {
			t.Errorf("%d matches of %d", len(fit.Matches)+fit.More, len(c.Matches))
		}
	})
}

func TestCompletionIsBounded(t *testing.T) {
	many := make([]string, maxMatches+7)
	for i := range many {
		many[i] = strings.Repeat("x", i%10+1)
	}
	many[0] = strings.Repeat("x", maxMatch+1)
	c := completionOf(kernels.Completion{Matches: many}, "")
	if len(c.Matches) != maxMatches || c.More != 6 {
		t.Errorf("%d and %d more", len(c.Matches), c.More)
	}
	text, _ := json.Marshal(strings.Repeat("é", maxHelp))
	help := helpOf(kernels.Inspection{Found: true, Data: map[string]json.RawMessage{"text/plain": text}})
	if len(help) > maxHelp+len("…") || !utf8.ValidString(help) {
		t.Errorf("%d bytes", len(help))
	}
}
