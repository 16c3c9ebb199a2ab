//go:build !race

package notebook

import (
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
func TestMemoryOfALargeNotebook(t *testing.T) {
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
