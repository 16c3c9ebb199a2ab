package history

import (
	"slices"
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

// Outputs that are looked for are read a page at a time, over the ends of cells: what is committed behind a page is seen.
func TestFoundInPages(t *testing.T) {
	s := limited(t, Options{Folder: t.TempDir()})
	defer closeStore(t, s)
	stored, err := s.Open(t.Context(), sessions.StoredSession{ID: "a", Language: "python", Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(number, first, count int) {
		kept := sessions.OutputsKept{Number: number, First: first}
		for range count {
			kept.Outputs = append(kept.Outputs, kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: strings.Repeat("x", pageBytes/8), Time: time.Now()})
		}
		if err := s.Commit(t.Context(), stored.Ref, kept); err != nil {
			t.Fatal(err)
		}
	}
	var want, got [][2]int
	for number := 1; number <= 3; number++ {
		if err := s.Commit(t.Context(), stored.Ref, sessions.ExecutionQueued{Number: number, Queued: time.Now()}); err != nil {
			t.Fatal(err)
		}
		keep(number, 0, 12)
		for i := range 12 {
			want = append(want, [2]int{number, i})
		}
	}
	want = slices.Insert(want, 12, [2]int{1, 12})
	slices.Reverse(want)
	for out, err := range s.FindOutputs(t.Context(), stored.Ref, sessions.OutputQuery{From: 1, To: 3, Limit: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			keep(1, 12, 1)
		}
		got = append(got, [2]int{out.Number, out.Index})
	}
	if !slices.Equal(got, want) {
		t.Errorf("cells and outputs %v, want %v", got, want)
	}
}
