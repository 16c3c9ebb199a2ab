package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"testing"
)

func animation(t testing.TB, n int) []byte {
	t.Helper()
	all := gif.GIF{LoopCount: 0}
	for i := range n {
		picture := image.NewPaletted(image.Rect(0, 0, 30, 20), color.Palette{color.White, color.Black, color.Gray{Y: 9}})
		picture.SetColorIndex(i%30, 1, 1)
		all.Image, all.Delay = append(all.Image, picture), append(all.Delay, 5)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &all); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzGIFPictures(f *testing.F) {
	f.Add(animation(f, 3))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\xff\x00\x00!"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := gif.DecodeAll(bytes.NewReader(raw))
		if n := gifPictures(raw); err == nil && n != len(all.Image) {
			t.Errorf("%d pictures, and not %d", n, len(all.Image))
		}
	})
}
