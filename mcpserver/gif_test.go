package mcpserver

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"strings"
	"testing"

	"cellblock/kernels"
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

// Of an animation a model sees one picture, and is told so.
func TestAnimationsAreTold(t *testing.T) {
	for n, want := range map[int]string{1: "", 2: "[the first of 2 pictures of an animation]", 300: "[the first of 300 pictures of an animation]"} {
		got := dump(render(kernels.Output{Kind: kernels.OutputDisplay, Data: display("image/gif", base64.StdEncoding.EncodeToString(animation(t, n))).Data}))
		if !strings.Contains(got, "image/png") || strings.Contains(got, "animation") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%d: %s", n, got)
		}
	}
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
