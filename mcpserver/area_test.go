package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

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
