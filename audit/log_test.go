package audit

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"cellblock/internal/fault"
)

// Several processes write one log.
func TestWritersSideBySide(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		l := openLog(t, dir, small)
		wg.Go(func() {
			for range 200 {
				l.Append(Entry{Event: Answered, Tool: "execute_python"})
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if r := verified(t, dir); r.Lines != 800 || len(r.Problems)+len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	mend := broken(t, dir)
	for range 3 {
		l.Append(Entry{Event: Answered})
	}
	l.Required = true // to wait for the writer, which does not keep what somebody waits for
	if err := l.Require(t.Context(), Entry{Event: Called}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a call goes on without its line: %v", err)
	}
	if err := l.Health(); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("health: %v", err)
	}
	mend()
	if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
		t.Error(err)
	}
	if err := l.Health(); err != nil {
		t.Errorf("health: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if r := verified(t, dir); r.Lines != 4 || len(r.Problems)+len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsLostIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		entry Entry
		most  uint64 // that the queue and what is kept hold
	}{
		"many lines":  {Entry{Event: Answered}, 2 * maxKept},
		"large lines": {Entry{Event: Called, Code: strings.Repeat("x", maxCode)}, 2 * maxHeld / maxCode},
	} {
		t.Run(name, func(t *testing.T) { testLosses(t, c.entry, c.most+7) })
	}
}

func testLosses(t *testing.T, e Entry, n uint64) {
	dir := t.TempDir()
	l := openLog(t, dir, func(o *Options) { o.Code = true })
	mend := broken(t, dir)
	for range n {
		l.Append(e)
	}
	l.Required = true
	for { // until there is room, and then until the writer has seen all before it
		if err := l.Require(t.Context(), Entry{Event: Called}); err == nil {
			t.Fatal("nothing is broken")
		} else if !strings.Contains(err.Error(), "too much waits") {
			break
		}
		runtime.Gosched()
	}
	mend()
	if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	r := verified(t, dir)
	_, lines := linesOf(t, dir)
	var lost line
	for _, text := range lines {
		var l line
		if _, err := unsealed(testKey, bytes.TrimSuffix(text, []byte("\n")), &l); err == nil && l.Event == Lost {
			lost = l
		}
	}
	if told := r.Lines - 2 + lost.Count; lost.Count == 0 || told != n || len(r.Notes) != 1 {
		t.Errorf("%d lines and %d lost, of %d: %v", r.Lines, lost.Count, n, r.Notes)
	}
}

func TestRequiredLogThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	broken(t, dir)
	o := Options{Path: filepath.Join(dir, "audit.jsonl"), Key: testKey, Required: true, Logger: quiet}
	if _, err := Open(o); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	o.Required = false
	l, err := Open(o)
	if err != nil || l.Health() == nil {
		t.Errorf("%v, %v", err, l.Health())
	}
	if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
		t.Errorf("a log that is not required held up a call: %v", err)
	}
	if err := l.Close(); err == nil {
		t.Error("Close says nothing of what is lost")
	}
}

func TestRequireEndsWithItsCall(t *testing.T) {
	l := openLog(t, t.TempDir(), func(o *Options) { o.Required = true })
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // the disk is mostly slower
		if err := l.Require(ctx, Entry{Event: Called}); err != nil {
			return
		}
	}
	t.Error("a call that was given up waited for the disk a hundred times")
}

func BenchmarkAppend(b *testing.B) {
	l, err := Open(Options{Path: filepath.Join(b.TempDir(), "audit.jsonl"), Key: testKey, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := Entry{Event: Answered, Issuer: "https://issuer", Subject: "ann", Tool: "execute_python", Session: "analysis", Status: "ok"}
	b.ReportAllocs()
	for b.Loop() {
		l.Append(e)
	}
}

func TestANilLogDoesNothing(t *testing.T) {
	var none *Log
	none.Append(Entry{})
	if err := none.Require(t.Context(), Entry{}); err != nil || none.Health() != nil || none.Close() != nil {
		t.Error("nil log")
	}
}
