package picture

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"math"
	"testing"
)

// ample is more room than a small image needs.
var ample = Room{Bytes: MaxBytes, Pixels: maxPixels, Side: DefaultSide}

// Writing is as high as its points and the picture's own resolution have it: a plot for print can be made smaller than one for a screen.
func TestUnreadable(t *testing.T) {
	for _, tt := range []struct {
		width, shown int
		dpi          float64
		want         bool
	}{
		{4500, 1568, 300, false},
		{6000, 1568, 300, false},
		{1000, 261, 100, true},
		{1000, 500, 100, false},
		{4000, 1568, 72, false},
		{1200, 261, 72, true},
		{6000, 1568, 0, false},
		{7000, 1568, 0, true},
	} {
		if got := (&Fitted{Width: tt.width, Shown: image.Pt(tt.shown, 1), DPI: tt.dpi}).Unreadable(); got != tt.want {
			t.Errorf("%+v", tt)
		}
	}
	const inch = "\x00\x00\x00\x09pHYs\x00\x00\x0f\x61\x00\x00\x0f\x61\x01sum!"
	for said, want := range map[string]float64{"": 0, inch: 100, inch[:12]: 0, inch[:16] + "\x00": 0, "IDAT" + inch: 0} {
		if got := dpiOf([]byte(pngSignature + said)); math.Abs(got-want) > 0.1 {
			t.Errorf("%q: %v", said, got)
		}
	}
}

// What shines through is seen on white, whatever the client would put it on.
func TestImageOnWhite(t *testing.T) {
	nothing, half, palette := image.NewNRGBA(image.Rect(0, 0, 40, 30)), image.NewNRGBA(image.Rect(0, 0, 40, 30)), image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{color.Transparent})
	for i := range half.Pix {
		half.Pix[i] = []byte{0, 0, 0, 128}[i%4]
	}
	for want, img := range map[color.RGBA]image.Image{{255, 255, 255, 255}: nothing, {127, 127, 127, 255}: half} {
		if got := shownAs(t, img, ample); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if got := shownAs(t, palette, ample); got != (color.RGBA{255, 255, 255, 255}) {
		t.Errorf("a palette: %v", got)
	}
	var animated bytes.Buffer
	if err := gif.Encode(&animated, palette, nil); err != nil {
		t.Fatal(err)
	}
	fit, err := Fit("image/gif", base64.StdEncoding.EncodeToString(animated.Bytes()), ample)
	if config := pngConfig(t, fit.Data); err != nil || len(config.ColorModel.(color.Palette)) == 0 {
		t.Errorf("a palette becomes %v, %v", config.ColorModel, err)
	}
	small := ample
	small.Side = 20
	if got := shownAs(t, half, small); got != (color.RGBA{127, 127, 127, 255}) {
		t.Errorf("made smaller: %v", got)
	}
}

func pngConfig(t *testing.T, data string) image.Config {
	t.Helper()
	raw, _ := base64.StdEncoding.DecodeString(data)
	config, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// shownAs is the colour in the middle of an image as a client gets it.
func shownAs(t *testing.T, img image.Image, r Room) color.Color {
	t.Helper()
	raw, err := encodePNG(img)
	if err != nil {
		t.Fatal(err)
	}
	fit, err := Fit("image/png", base64.StdEncoding.EncodeToString(raw), r)
	if err != nil || fit.MIME != "image/png" {
		t.Fatal(fit.MIME, err)
	}
	raw, _ = base64.StdEncoding.DecodeString(fit.Data)
	got, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return color.RGBAModel.Convert(got.At(got.Bounds().Dx()/2, got.Bounds().Dy()/2))
}

func jpegOf(t *testing.T, w, h int) []byte {
	t.Helper()
	data, err := encodeJPEG(image.NewRGBA(image.Rect(0, 0, w, h)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
