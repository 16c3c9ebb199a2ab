package mcpserver

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"runtime"
	"testing"

	xdraw "golang.org/x/image/draw"
)

// figure is like a plot: lines of one pixel and of several, small marks, an area of colours that flow, and, unless it is
// opaque, a ground that shines through.
func figure(w, h int, opaque bool) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	if opaque {
		draw.Draw(m, m.Rect, image.White, image.Point{}, draw.Src)
	}
	for y := range h {
		for x := range w {
			switch {
			case x%97 == 5 || y%61 < 3 || (x+y)%203 < 2:
				m.SetNRGBA(x, y, color.NRGBA{A: 255})
			case x%40 < 4 && y%30 < 6:
				m.SetNRGBA(x, y, color.NRGBA{R: 200, B: 30, A: 255})
			case x > w/2 && y > h/2:
				m.SetNRGBA(x, y, color.NRGBA{R: uint8(255 * x / w), G: uint8(255 * y / h), B: uint8(x ^ y), A: 255})
			}
		}
	}
	return m
}

// psnr is how near two images of one size are, in dB: from 40 on nobody sees a difference.
func psnr(a, b image.Image) float64 {
	sum := 0.0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p, q := color.RGBAModel.Convert(a.At(x, y)).(color.RGBA), color.RGBAModel.Convert(b.At(x, y)).(color.RGBA)
			for _, d := range []int{int(p.R) - int(q.R), int(p.G) - int(q.G), int(p.B) - int(q.B), int(p.A) - int(q.A)} {
				sum += float64(d * d)
			}
		}
	}
	return 10 * math.Log10(255*255*4*float64(a.Bounds().Dx()*a.Bounds().Dy())/max(sum, 1e-9))
}

func scaledBy(kernel xdraw.Scaler, img image.Image, size image.Rectangle) image.Image {
	m := image.NewRGBA(size)
	kernel.Scale(m, size, img, img.Bounds(), xdraw.Src, nil)
	return m
}

// What is made in few steps is what the filter alone makes of the whole image.
func TestScaleLooksLikeTheFilter(t *testing.T) {
	for _, tt := range []struct {
		name    string
		img     image.Image
		side    int
		atLeast float64 // dB
	}{
		{"by less than 2", figure(700, 500, true), 400, 55},
		{"by nearly 3", figure(1150, 770, true), 400, 34},
		{"by nearly 3, on nothing", figure(1150, 770, false), 400, 34},
		{"by more than the largest factor", figure(3000, 600, true), 90, 34},
		{"high", figure(300, 1150, true), 400, 34},
	} {
		got := scale(tt.img, tt.side)
		if d := psnr(got, scaledBy(xdraw.CatmullRom, tt.img, got.Bounds())); d < tt.atLeast {
			t.Errorf("%s: %.1f dB", tt.name, d)
		}
		if rough := scaledBy(xdraw.NearestNeighbor, tt.img, got.Bounds()); psnr(got, rough) > 30 {
			t.Errorf("%s: the test cannot tell a good filter", tt.name)
		}
	}
}

// All forms of pixels that decoders return are read alike, also those of a part of an image.
func TestScaleReadsAllForms(t *testing.T) {
	white := figure(333, 217, true)
	for i := range white.Pix {
		white.Pix[i] = white.Pix[i] / 128 * 255 // of 8 colours, and opaque
	}
	want := scale(white, 100)
	var palette color.Palette
	for i := range 8 {
		palette = append(palette, color.NRGBA{R: uint8(i & 1 * 255), G: uint8(i >> 1 & 1 * 255), B: uint8(i >> 2 * 255), A: 255})
	}
	around := image.Rect(-7, -5, 400, 300)
	for _, m := range []draw.Image{
		image.NewRGBA(around), image.NewNRGBA(around), image.NewNRGBA64(around), image.NewRGBA64(around), image.NewPaletted(around, palette),
	} {
		draw.Draw(m, white.Rect.Add(image.Pt(11, 13)), white, image.Point{}, draw.Src)
		part := m.(interface {
			SubImage(image.Rectangle) image.Image
		}).SubImage(white.Rect.Add(image.Pt(11, 13)))
		if d := psnr(scale(part, 100), want); d < 90 {
			t.Errorf("%T: %.1f dB", m, d)
		}
	}
}

// Edges are not darker or lighter, whatever is left of a cell there; nothing is brighter than its alpha.
func TestScaleKeepsOneColour(t *testing.T) {
	for _, size := range []image.Point{{1001, 3}, {3, 1001}, {1999, 1999}, {40_000, 1}, {1, 40_000}, {667, 500}} {
		for _, c := range []color.NRGBA{{255, 255, 255, 255}, {10, 200, 30, 255}, {255, 100, 0, 128}} {
			img := image.NewNRGBA(image.Rectangle{Max: size})
			draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
			want := color.RGBAModel.Convert(c)
			got := scale(img, 300)
			for y := range got.Bounds().Dy() {
				for x := range got.Bounds().Dx() {
					if got.At(x, y) != want {
						t.Fatalf("%v of %v: %v at %d,%d", size, want, got.At(x, y), x, y)
					}
				}
			}
		}
	}
}

// The lines that several goroutines make are those that one makes.
func TestScaleHasNoSeams(t *testing.T) {
	img := figure(900, 1500, true)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := scale(img, 500)
	runtime.GOMAXPROCS(7)
	if d := psnr(scale(img, 500), want); d < 100 {
		t.Errorf("%.1f dB", d)
	}
}

func BenchmarkScale(b *testing.B) {
	img := figure(4500, 3000, true)
	for b.Loop() {
		scale(img, DefaultImageSide)
	}
}
