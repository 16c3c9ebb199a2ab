//go:build !race

// The race detector takes ten times as long for what is large, and finds nothing in it: all of it goes through one goroutine.

package notebook

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"cellblock/kernels"
)

// allocated is how many bytes f allocates in all.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// A large notebook takes little more memory than its outputs and its file: what was printed is joined once, and the file is
// written bit by bit.
func TestUnracedMemoryOfALargeNotebook(t *testing.T) {
	chunk := strings.Repeat(strings.Repeat("0123456789 ", 10)+"\n", 70)
	picture := kernels.Output{Kind: kernels.OutputDisplay, Data: bundleWith("image/png", strings.Repeat("iVBORw0KGgo", 1<<20/11))}
	var cells [][]kernels.Output
	for range 4 {
		var outs []kernels.Output
		for range (6 << 20) / len(chunk) {
			outs = append(outs, text("stdout", chunk))
		}
		cells = append(cells, append(outs, picture))
	}
	var n *Notebook
	var file string
	var err error
	built := allocated(func() { n = build(cells...) })
	written := allocated(func() { file, err = n.Text() })
	if size := float64(len(file)); err != nil || size < 28<<20 || built > 1.5*size || written > 1.5*size {
		t.Errorf("a file of %d MiB: built with %.1f times as much memory, written with %.1f times, %v", len(file)>>20, built/size, written/size, err)
	}
}

// A notebook has a bound. What does not fit is counted at its place; what was replaced takes no room.
func TestUnracedBounds(t *testing.T) {
	big := strings.Repeat("x", maxCell/2+1)
	n := build([]kernels.Output{text("stdout", big), text("stdout", big), text("stdout", "end")}, []kernels.Output{text("stdout", "next")})
	first := n.Cells[0].Outputs
	if len(first) != 2 || first[0].Text != big+"end" || !strings.Contains(first[1].Text, "1 output (") || summary(n.Cells[1]) != "stdout next" {
		t.Errorf("%d outputs, the last %q", len(first), first[len(first)-1].Text)
	}
	var frames []kernels.Output
	for i := range 10 {
		frames = append(frames, clearOutput(true), text("stdout", fmt.Sprint(i, strings.Repeat("x", maxCell/4))), show(kernels.OutputUpdate, "d", big))
	}
	if got := build(frames).Cells[0].Outputs; len(got) != 1 || !strings.HasPrefix(got[0].Text, "9x") {
		t.Errorf("of an animation: %d outputs", len(got))
	}
	frames = []kernels.Output{show(kernels.OutputDisplay, "d", "")}
	for i := range 10 {
		frames = append(frames, show(kernels.OutputUpdate, "d", fmt.Sprint(i, big)))
	}
	if got := build(frames).Cells[0].Outputs; len(got) != 1 || !strings.HasPrefix(got[0].Data["text/plain"].(string), "9x") {
		t.Errorf("of a display that is replaced: %d outputs", len(got))
	}
	var copies []kernels.Output
	for range 100 {
		copies = append(copies, show(kernels.OutputDisplay, "d", ""))
	}
	copies = append(copies, show(kernels.OutputUpdate, "d", big))
	if file, err := build(copies).Text(); err != nil || len(file) > maxCell {
		t.Errorf("one update of a hundred displays takes %d bytes, %v", len(file), err)
	}
	var cells [][]kernels.Output
	for range 6 {
		cells = append(cells, []kernels.Output{text("stdout", strings.Repeat("x", maxCell-100))})
	}
	if file, err := build(cells...).Text(); err != nil || len(file) > MaxBytes+1<<20 {
		t.Errorf("six large cells take %d bytes, %v", len(file), err)
	}
}
