package jsontext

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// plainEnd is PlainEnd, byte by byte.
func plainEnd(b []byte, at int) int {
	for at < len(b) && b[at] >= ' ' && b[at] != '"' && b[at] != '\\' {
		at++
	}
	return at
}

// Wherever the end of a run is, it is found, with others near it or none.
func TestPlainEnd(t *testing.T) {
	ends := []byte("\"\\\n\x00\x1f")
	random := rand.New(rand.NewPCG(1, 2))
	for size := 0; size < 4*maxWindow; size = size*9/8 + 1 {
		b := bytes.Repeat([]byte("x\x7f\x80\xff!#[]"), size/8+1)[:size]
		for range 4 {
			for _, at := range []int{0, size / 3, size} {
				if got, want := PlainEnd(b, at), plainEnd(b, at); got != want {
					t.Fatalf("of %d bytes from %d on the run ends at %d, want %d", size, at, got, want)
				}
			}
			if size > 0 {
				b[random.IntN(size)] = ends[random.IntN(len(ends))]
			}
		}
	}
}

func FuzzPlainEnd(f *testing.F) {
	f.Add([]byte("text\n"), uint16(2*nearby), uint16(1))
	f.Fuzz(func(t *testing.T, tail []byte, before, from uint16) {
		b := append(bytes.Repeat([]byte("y"), int(before)), tail...)
		at := min(int(from), len(b))
		if got, want := PlainEnd(b, at), plainEnd(b, at); got != want {
			t.Fatalf("the run ends at %d, want %d", got, want)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"lines", strings.Repeat(strings.Repeat("x", 79)+"\n", 50_000)},
		{"one line", strings.Repeat("x", 4_000_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			text, quoted := []byte(c.text), []byte(nil)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				quoted = Append(quoted[:0], text)
			}
		})
	}
}
