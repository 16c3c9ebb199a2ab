package history

import (
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
)

// A page of outputs whose text is in files has no more of them than a reader wants at a time.
func TestPageOfFiles(t *testing.T) {
	s := limited(t, Options{Folder: t.TempDir()})
	defer closeStore(t, s)
	stored, err := s.Open(t.Context(), sessions.StoredSession{ID: "a", Language: "python", Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	ref, text := stored.Ref, strings.Repeat("x", pageBytes/8)
	large := make([]kernels.Output, 20)
	for i := range large {
		large[i] = kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: text, Time: time.Now()}
	}
	if err := s.Commit(t.Context(), ref, sessions.ExecutionQueued{Number: 1, Queued: time.Now()}, sessions.OutputsKept{Number: 1, Outputs: large}); err != nil {
		t.Fatal(err)
	}
	page, more, err := s.page(t.Context(), ref, 1, 0)
	if err != nil || len(page) != 8 || !more || page[0].blob == "" {
		t.Errorf("%d outputs, more %t, %v", len(page), more, err)
	}
	n := 0
	for _, err := range s.Outputs(t.Context(), ref, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != len(large) {
		t.Errorf("%d of %d outputs", n, len(large))
	}
}
