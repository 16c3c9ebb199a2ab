package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"cellblock/internal/fault"
)

func TestAWholeLogHolds(t *testing.T) {
	dir := written(t, 23, small)
	writeMore(t, dir, 3, small) // another process
	r := verified(t, dir)
	if r.Lines != 26 || r.First != 1 || r.Last != 26 || r.Files < 4 || len(r.Problems)+len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
	files, lines := linesOf(t, dir)
	for _, name := range append(files, filepath.Join(dir, "audit.jsonl.head")) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 1500 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	var first map[string]any
	if err := json.Unmarshal(lines[0], &first); err != nil || first["tool"] != "execute_python" || first["seq"] != 1.0 || first["time"] == nil {
		t.Errorf("%s: %v", lines[0], err)
	}
}

func TestArchivedFiles(t *testing.T) {
	dir := written(t, 23, small)
	files, lines := linesOf(t, dir)
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	gone := uint64(bytes.Count(text, []byte("\n")))
	path := filepath.Join(dir, "audit.jsonl")
	if r, err := Verify(Check{Path: path, Key: testKey, From: gone + 1}); err != nil || len(r.Problems) > 0 || r.Lines != uint64(len(lines))-gone {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Verify(Check{Path: path, Key: testKey, From: gone}); err != nil || len(r.Problems) != 1 {
		t.Errorf("one too many: %+v, %v", r, err)
	}
}

func TestNothingToVerify(t *testing.T) {
	if _, err := Verify(Check{Path: filepath.Join(t.TempDir(), "audit.jsonl"), Key: testKey}); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}
