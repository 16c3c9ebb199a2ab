package viewer

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// What is looked for is found in code and in what cells have put out, in capitals or not, in the order of the cells, by its owner alone.
func TestFind(t *testing.T) {
	p := newPages(t)
	for _, code := range []string{"print Needle in hay", "x = 1", "needle = 2", "print more hay"} {
		p.ran("ann", "s", code)
	}
	ann := p.signIn("ann", all...)
	for text, want := range map[string][]int{"needle": {1, 3}, "NEEDLE IN": {1}, "hay": {1, 4}, "straw": {}} {
		var got struct {
			Cells   []int
			Partial bool
		}
		if err := json.Unmarshal([]byte(ann.want(200, "GET", "/s/s/find?text="+url.QueryEscape(text), nil)), &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Cells, want) || got.Partial {
			t.Errorf("%q: %+v, want %v", text, got, want)
		}
	}
	if got := ann.want(200, "GET", "/s/s/find?text=straw", nil); !strings.Contains(got, `"cells":[]`) {
		t.Errorf("where there are none, it is answered with %s", got)
	}
	ann.want(400, "GET", "/s/s/find?text=", nil)
	ann.want(400, "GET", "/s/s/find?text="+strings.Repeat("x", 201), nil)
	p.signIn("bob", all...).want(404, "GET", "/s/s/find?text=hay", nil)
}

// What cells have put out is found with a store and without one, also of one that runs, and a store is not asked for each of them.
func TestFindInOutputs(t *testing.T) {
	const cells = blockCells + 9 // which are kept also without a store
	store := &readStore{Store: storetest.NewMemory()}
	for name, change := range map[string]func(*sessions.Config){
		"no store": func(*sessions.Config) {}, "a store": func(c *sessions.Config) { c.Store = store },
	} {
		p := newPages(t, change)
		p.ran("ann", "s", "set word straw")
		want := []int{1}
		for n := 2; n < cells; n++ {
			if n%10 == 0 {
				want = append(want, n)
				p.ran("ann", "s", "get word")
			} else {
				p.ran("ann", "s", "print hay")
			}
		}
		p.ran("ann", "s", "print hay\nprint rick")
		ann := p.signIn("ann", all...)
		var over struct{ Cells []int }
		if err := json.Unmarshal([]byte(ann.want(200, "GET", "/s/s/find?text=hay%0Arick", nil)), &over); err != nil || !slices.Equal(over.Cells, []int{cells}) {
			t.Errorf("with %s, over two outputs: %v %v", name, err, over.Cells)
		}
		ann.want(202, "POST", "/s/s/run", map[string]any{"code": "get word\nwait"})
		want = append(want, cells+1)
		running, err := p.sessions.Execution(t.Context(), sessions.Owner{Issuer: "test", Subject: "ann"}, "s", cells+1)
		if err != nil {
			t.Fatal(err)
		}
		for range running.OutputsFrom(t.Context(), 0) {
			break // it has put something out
		}
		store.read.Store(0)
		var got struct{ Cells []int }
		if err := json.Unmarshal([]byte(ann.want(200, "GET", "/s/s/find?text=straw", nil)), &got); err != nil || !slices.Equal(got.Cells, want) {
			t.Errorf("with %s: %v %v, want %v", name, err, got.Cells, want)
		}
		if n := store.read.Load(); n > 1 {
			t.Errorf("a store is asked for the outputs of %d cells", n)
		}
		if n := store.together.Swap(0); n > 2 { // searches
			t.Errorf("a store is asked %d times for those of many", n)
		}
	}
}

// Of cells with much code no more than there is room for is read at once, and all of them are looked through.
func TestFindInMuchCode(t *testing.T) {
	const cells, far = 40, "\n# needle"
	store := &codeStore{Store: storetest.NewMemory()}
	p := newPages(t, func(c *sessions.Config) { c.Store = store })
	for n := range cells {
		code := "x" + strings.Repeat("x", sessions.MaxCode/2)
		if n%10 == 1 {
			code += far
		}
		p.ran("ann", "s", code)
	}
	store.most.Store(0)
	var got struct{ Cells []int }
	err := json.Unmarshal([]byte(p.signIn("ann", all...).want(200, "GET", "/s/s/find?text=needle", nil)), &got)
	if err != nil || !slices.Equal(got.Cells, []int{2, 12, 22, 32}) {
		t.Errorf("%v %v", err, got.Cells)
	}
	if read := store.most.Load(); read == 0 || read > maxCodeAtOnce+sessions.MaxCode {
		t.Errorf("%d bytes of code were read at once", read)
	}
}

// codeStore knows how much code was read at once.
type codeStore struct {
	sessions.Store
	most atomic.Int64
}

func (s *codeStore) Executions(ctx context.Context, ref sessions.SessionRef, from, limit int, code int64) ([]sessions.StoredExecution, error) {
	all, err := s.Store.Executions(ctx, ref, from, limit, code)
	read := int64(0)
	for _, e := range all {
		read += int64(len(e.Code))
	}
	s.most.Store(max(s.most.Load(), read))
	return all, err
}

// Texts in many pieces are put together once, and not again for each piece.
func TestFindInManyPieces(t *testing.T) {
	const pieces, size = maxAtOnce - 10, 10_000
	store := &piecesStore{Store: storetest.NewMemory(), pieces: pieces, text: strings.Repeat("x", size)}
	p := newPages(t, func(c *sessions.Config) { c.Store = store })
	p.ran("ann", "s", "print a")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	texts := p.viewer.storedTexts(t.Context(), sessions.Owner{Issuer: "test", Subject: "ann"}, "s", 1, 1)
	if text := strings.Join(texts[1], ""); len(text) != pieces*size {
		t.Errorf("%d bytes were read, want %d", len(text), pieces*size)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 10*pieces*size {
		t.Errorf("%d bytes took %d", pieces*size, took)
	}
}

// piecesStore has a cell that has put out the same text many times.
type piecesStore struct {
	sessions.Store
	pieces int
	text   string
}

func (s *piecesStore) FindOutputs(context.Context, sessions.SessionRef, sessions.OutputQuery) iter.Seq2[sessions.FoundOutput, error] {
	return func(yield func(sessions.FoundOutput, error) bool) {
		for i := s.pieces - 1; i >= 0; i-- {
			out := kernels.Output{Kind: kernels.OutputStream, Text: s.text}
			if !yield(sessions.FoundOutput{Number: 1, StoredOutput: sessions.StoredOutput{Index: i, Output: out}}, nil) {
				return
			}
		}
	}
}

// readStore counts the cells whose outputs are read on their own, and how often those of several are read together.
type readStore struct {
	sessions.Store
	read, together atomic.Int64
}

func (s *readStore) FindOutputs(ctx context.Context, ref sessions.SessionRef, q sessions.OutputQuery) iter.Seq2[sessions.FoundOutput, error] {
	s.together.Add(1)
	return s.Store.FindOutputs(ctx, ref, q)
}

func (s *readStore) Outputs(ctx context.Context, ref sessions.SessionRef, number, from int) iter.Seq2[sessions.StoredOutput, error] {
	s.read.Add(1)
	return s.Store.Outputs(ctx, ref, number, from)
}
