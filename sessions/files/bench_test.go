package files

import (
	"fmt"
	"path/filepath"
	"testing"
)

// What a scan adds to every cell.
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{0, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			for i := range n {
				put(b, filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprint(i)), "x")
			}
			for b.Loop() {
				f, err := Open(dir, 0, 0)
				if err != nil {
					b.Fatal(err)
				}
				if _, ok := f.Scan(); !ok {
					b.Fatal("not all")
				}
				f.Close()
			}
		})
	}
}
