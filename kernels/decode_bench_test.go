package kernels

import (
	"bytes"
	"testing"

	"cellblock/kernels/wire"
)

// BenchmarkDecode is what a client does with each byte of what a kernel shows.
func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct{ name, msgType, before, each, after string }{
		{"picture", "display_data", `{"data":{"image/png":"`, "AAAA", `","text/plain":"<Figure>"},"metadata":{},"transient":{}}`},
		{"lines", "stream", `{"name":"stdout","text":"`, `a line of output\n`, `"}`},
	} {
		content := bytes.Join([][]byte{[]byte(c.before), bytes.Repeat([]byte(c.each), 4<<20/len(c.each)), []byte(c.after)}, nil)
		parts := wire.Message{Header: wire.NewHeader("a", "b", c.msgType), Content: content}.Parts()
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				m, err := wire.FromParts(parts)
				if err == nil {
					_, err = decodeOutput(m, 1)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
