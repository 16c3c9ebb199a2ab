package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The audit log of a server that was killed says what its cells used, holds, and is missed when somebody deletes it with its
// head; the next server goes on behind it.
func TestAuditLog(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir, "local", noPool)
	python(t, s.Connect(t, s.Token(t), false), "audited", "_ = sum(range(10**7))")
	verify := func() (string, int) {
		t.Helper()
		return cellblock(t, nil, "", "audit", "verify", "--data-dir", dir)
	}
	ended := func() (line struct {
		Seq    int     `json:"seq"`
		CPU    float64 `json:"cpu_ms"`
		Memory int64   `json:"peak_memory_bytes"`
	}, found bool) {
		text, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(text) {
			if bytes.Contains(l, []byte(`"event":"ended"`)) {
				if err := json.Unmarshal(l, &line); err != nil {
					t.Fatal(err)
				}
				found = true
			}
		}
		return line, found
	}
	s.Stop(t)
	line, found := ended()
	if !found || line.CPU < 20 || line.CPU > 60_000 || line.Memory < 10<<20 {
		t.Errorf("the cell's line: %+v, %v", line, found)
	}
	if out, code := verify(); code != 0 {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	for _, name := range []string{"audit.jsonl", "audit.jsonl.head"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out, code := verify(); code != 65 || !strings.Contains(out, "log and head were put back or taken away") {
		t.Errorf("deleted: exit status %d:\n%s", code, out)
	}
	s = startIn(t, dir, "local", noPool)
	python(t, s.Connect(t, s.Token(t), false), "audited", "1")
	s.Stop(t)
	if after, found := ended(); !found || after.Seq <= line.Seq {
		t.Errorf("the lines go on with %+v after %+v", after, line)
	}
	if out, code := verify(); code != 65 || !strings.Contains(out, "tells of a gap") {
		t.Errorf("afterwards: exit status %d:\n%s", code, out)
	}
}
