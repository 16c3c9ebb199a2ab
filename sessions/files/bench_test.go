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

// What each level of folders in folders costs should not grow with their number.
func BenchmarkDeleteDeep(b *testing.B) {
	for _, n := range []int{250, 1000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				f, _ := Open(b.TempDir(), 0, 0)
				if err := f.root.Mkdir("deep", 0o755); err != nil {
					b.Fatal(err)
				}
				at, _ := f.root.OpenRoot("deep")
				for range n {
					_ = at.Mkdir("deep", 0o755)
					below, err := at.OpenRoot("deep")
					if err != nil {
						b.Fatal(err)
					}
					at.Close()
					at = below
				}
				at.Close()
				b.StartTimer()
				if _, err := f.Delete("deep", true); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				f.Close()
				b.StartTimer()
			}
		})
	}
}
