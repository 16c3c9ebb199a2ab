package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"cellblock/kernels"
)

// A cell that shows more than a call can hold is told of, all of it, without being held.
func TestAreaHoldsABoundedPart(t *testing.T) {
	a := newArea()
	image := json.RawMessage(`"` + strings.Repeat("A", 1<<20) + `"`)
	for i := range 100 {
		a.index = i
		a.add(kernels.Output{Kind: kernels.OutputDisplay, DisplayID: "d", Data: mimeBundle{
			"image/png": image, "text/plain": json.RawMessage(`"plot ` + strings.Repeat("i", i) + `"`),
		}})
		a.add(kernels.Output{Kind: kernels.OutputUpdate, DisplayID: "d", Data: mimeBundle{"image/png": image}})
	}
	held := 0
	for _, it := range a.items {
		held += bundleSize(it.out.Data)
	}
	if len(a.items) != 100 || held != a.held || held > maxHeld+100*largeForm || held < maxHeld/2 {
		t.Errorf("%d items with %d bytes, counted as %d", len(a.items), held, a.held)
	}
	var said strings.Builder
	for _, p := range a.items[99].pieces(&budget{chars: 1000}, bounds{}, place{session: "s", execution: 3}) {
		said.WriteString(p.text)
	}
	if !strings.Contains(said.String(), "large forms left out") || !strings.Contains(said.String(), "executions/3/outputs/99") {
		t.Errorf("the last is told as %q", said.String())
	}
	a.add(kernels.Output{Kind: kernels.OutputClear})
	if a.held != 0 || len(a.items) != 0 {
		t.Errorf("cleared, it holds %d bytes", a.held)
	}
}

func FuzzArea(f *testing.F) {
	f.Add("a\r", "text/html", "<p>x", "d", true)
	f.Fuzz(func(t *testing.T, s, mime, value, id string, wait bool) {
		outs := []kernels.Output{
			stdout(s), stderr(s), withID(id, kernels.OutputDisplay, display(mime, value, "text/plain", s)), {Kind: kernels.OutputClear, Wait: wait},
			withID(id, kernels.OutputUpdate, display(mime, value)), display("image/png", value, "image/gif", s), stdout(s),
		}
		for _, b := range render(outs...) {
			if s := fmt.Sprint(b); !utf8.ValidString(s) {
				t.Errorf("%q", s)
			}
		}
	})
}
