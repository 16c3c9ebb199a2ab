package sessions

import (
	"fmt"
	"log/slog"
	"testing"
	"time"
)

func labelledFolders(t testing.TB, n int) *workspaces {
	t.Helper()
	w, err := openWorkspaces(t.TempDir(), 1, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.write(newKernelID(), label{ID: fmt.Sprint("session-", i), Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// A label that another process has written, replaced or removed is seen, though those that are as before are not read again.
func TestLabelsOfOthers(t *testing.T) {
	w := labelledFolders(t, 2)
	others := &workspaces{root: w.root, log: w.log}
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
	name := newKernelID()
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
