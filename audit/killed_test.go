package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A process that is killed in the middle of a line leaves its beginning.
func TestAnUnfinishedLineIsCutOffAndToldOf(t *testing.T) {
	dir := written(t, 5)
	name := filepath.Join(dir, "audit.jsonl")
	_, lines := linesOf(t, dir)
	appendTo(t, name, lines[4][:37])
	if r := verified(t, dir); len(r.Problems) > 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "37 bytes") {
		t.Errorf("before the start: %+v", r)
	}
	writeMore(t, dir, 1)
	r := verified(t, dir)
	if len(r.Problems) > 0 || r.Lines != 7 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "a process was killed while it wrote line 6") {
		t.Errorf("after it: %+v", r)
	}
}

// A process that is killed after its lines and before the head has written them.
func TestLinesBehindTheHeadAreTakenOver(t *testing.T) {
	dir := written(t, 5)
	name := filepath.Join(dir, "audit.jsonl")
	h, err := names{name}.readHead(testKey)
	if err != nil {
		t.Fatal(err)
	}
	text, at, err := appendLine(testKey, nil, h.next(), Entry{Event: Called})
	if err != nil {
		t.Fatal(err)
	}
	text, _, err = appendLine(testKey, text, at, Entry{Event: Answered})
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, name, append(text, text[:10]...)) // and a bit of a third
	writeMore(t, dir, 2)
	if r := verified(t, dir); len(r.Problems) > 0 || r.Lines != 10 {
		t.Errorf("%+v", r)
	}
}

// A process that is killed while it begins a new file leaves none that is written.
func TestKilledWhileANewFileIsBegun(t *testing.T) {
	dir := written(t, 5)
	name := filepath.Join(dir, "audit.jsonl")
	if err := os.Rename(name, names{name}.full(1)); err != nil {
		t.Fatal(err)
	}
	writeMore(t, dir, 2)
	if r := verified(t, dir); len(r.Problems)+len(r.Notes) > 0 || r.Lines != 7 || r.Files != 2 {
		t.Errorf("%+v", r)
	}
}
