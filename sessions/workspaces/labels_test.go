package workspaces

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func labelledFolders(t testing.TB, n int) *Folders {
	t.Helper()
	w, err := New(Options{DataDir: t.TempDir(), UID: 1, GID: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.write(newName(), label{ID: fmt.Sprint("session-", i), Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// A label that another process has written, replaced or removed is seen, though those that are as before are not read again.
func TestLabelsOfOthers(t *testing.T) {
	w := labelledFolders(t, 2)
	others := &Folders{root: w.root, log: w.log}
	ids := func() map[string]bool {
		labels, _, err := w.labels()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, l := range labels {
			found[l.ID] = true
		}
		return found
	}
	if got := ids(); len(got) != 2 || !got["session-0"] || !got["session-1"] {
		t.Fatalf("found %v", got)
	}
	name := newName()
	for _, id := range []string{"one", "two", "six"} { // of one length
		if err := others.write(name, label{ID: id}); err != nil {
			t.Fatal(err)
		}
		if got := ids(); len(got) != 3 || !got[id] {
			t.Fatalf("%s is not among %v", id, got)
		}
	}
	others.remove(name)
	if got := ids(); len(got) != 2 {
		t.Fatalf("found %v", got)
	}
	if _, ok := w.seen.Load(name); ok {
		t.Fatal("a label that is gone is kept")
	}
}

func BenchmarkLabels(b *testing.B) {
	w := labelledFolders(b, 1000)
	for b.Loop() {
		if labels, _, err := w.labels(); err != nil || len(labels) != 1000 {
			b.Fatalf("%d labels, %v", len(labels), err)
		}
	}
}

// A label that cannot be put in its place leaves nothing beside it, however often that is tried.
func TestLabelThatCannotBeWrittenLeavesNothing(t *testing.T) {
	w := labelledFolders(t, 0)
	if err := os.MkdirAll(filepath.Join(w.labelPath("k"), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.write("k", label{Spare: true}); err == nil {
		t.Error("a folder was replaced by a label")
	}
	if left, err := filepath.Glob(filepath.Join(w.root, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}

func TestBrokenLabelsAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "workspaces")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"aaaaaaaaaaaaaaaa.json": "{", "bbbbbbbbbbbbbbbb.json": `{"session_id":"../x"}`, "..json": `{"session_id":"x"}`,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(opened(t, dir).byKey); n != 0 {
		t.Errorf("%d were read", n)
	}
}
