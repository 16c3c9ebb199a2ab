// Package picture makes images fit a language model's context: in pixels, in bytes, and whole, because a model's provider refuses a
// conversation that holds a broken one.
package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // decoded, and sent as PNG
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // decoded, and sent as PNG
)

const (
	// DefaultSide is the longest side, in pixels, that models look at; larger images are scaled down to it.
	DefaultSide = 1568
	// maxPixels bounds the images that are decoded at all: 200 MB of memory, and three times that for a progressive JPEG.
	maxPixels = 50_000_000
	// fewPixels is how many an image may have that is decoded beside others; of larger ones, one at a time is.
	fewPixels = 4_000_000
	// minSide is the longest side below which an image is left out rather than made smaller.
	minSide = 256
	// MaxBytes is the most that one image may take of a result, in bytes of base64: others want room too.
	MaxBytes = 400_000
	// MinBytes is the room below which no image is tried, and the least that an image takes: it bounds their number.
	MinBytes = 16_000
	// maxTries bounds the work for one image.
	maxTries = 4
)

// ErrNoRoom is returned for an image that does not fit even when it is made small.
var ErrNoRoom = errors.New("the images of this result are too large together")

// large is held by who decodes an image of more than fewPixels.
var large sync.Mutex

// Room is what there is for an image.
type Room struct {
	// Bytes is how many it may take as base64, Pixels how many may be decoded, Side how many its longest side may have.
	Bytes, Pixels, Side int
}

// Fitted is an image that fits.
type Fitted struct {
	// Data is the image in base64, MIME its type: image/png or image/jpeg.
	Data, MIME string
	// Width and Height are the original's; Smaller tells that Data has fewer pixels.
	Width, Height int
	Smaller       bool
	// Shown is the size of Data where it is smaller.
	Shown image.Point
	// DPI is how many pixels of the original are an inch, as it says itself; 0 if it does not.
	DPI float64
	// Pictures is how many an animation has of which Data is the first; 1 or less for what is none.
	Pictures int
}

const (
	// leastDPI is how many pixels an inch must have so that a plot's writing, some ten points high, can be read.
	leastDPI = 36
	// anyDPI is what programs write into photographs that have no inch.
	anyDPI = 72
	// tooSmall is how many times smaller an image is that nobody can read any more, of those that do not say what an inch is.
	tooSmall = 4
)

// Unreadable tells whether the writing of an image that was made smaller is too small.
func (f *Fitted) Unreadable() bool {
	times := float64(f.Width) / float64(f.Shown.X)
	if f.DPI > anyDPI {
		return f.DPI/times < leastDPI
	}
	return times > tooSmall
}

// Fit makes an image in base64, of some MIME type, fit a room. PNG and JPEG that fit go as they are; others
// are scaled down and encoded again, as JPEG where PNG is too large. What shines through is put on white, as notebooks show it: on
// what a model's provider puts it nobody knows. All are read to their end first. The error is ErrNoRoom where it does not fit; what is
// returned with it has the size of one that was looked at.
func Fit(mime, encoded string, r Room) (Fitted, error) {
	room := min(r.Bytes, MaxBytes)
	if room < MinBytes {
		return Fitted{}, ErrNoRoom
	}
	raw, err := DecodeBase64(encoded)
	if err != nil {
		return Fitted{}, err
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return Fitted{}, fmt.Errorf("%s cannot be decoded: %w", mime, err)
	}
	if config.Width <= 0 || config.Height <= 0 {
		return Fitted{}, fmt.Errorf("%s has no pixels", mime)
	}
	if config.Width > maxPixels/config.Height {
		return Fitted{}, fmt.Errorf("%d×%d pixels are too many", config.Width, config.Height)
	}
	if config.Width*config.Height > r.Pixels {
		return Fitted{}, ErrNoRoom
	}
	fit := Fitted{Width: config.Width, Height: config.Height, DPI: dpiOf(raw)}
	if format == "gif" {
		fit.Pictures = gifPictures(raw)
	}
	if config.Width*config.Height > fewPixels {
		large.Lock()
		defer large.Unlock()
	}
	asIs := (format == "png" || format == "jpeg") && max(config.Width, config.Height) <= r.Side &&
		base64.StdEncoding.EncodedLen(len(raw)) <= room
	if asIs && format == "png" && wholePNG(raw) {
		fit.set("image/png", raw)
		return fit, nil
	}
	img, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return fit, fmt.Errorf("%s cannot be decoded: %w", mime, err)
	}
	switch {
	case !opaque(img):
		format = "" // it is another one on white
	case asIs:
		fit.set("image/"+format, raw)
		return fit, nil
	}
	err = fit.shrink(img, format, room, r.Side)
	return fit, err
}

// DecodeBase64 decodes base64, also in lines, as some kernels write it.
func DecodeBase64(s string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(s) // which takes line ends, and nothing else
	if err != nil {
		raw, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
	}
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	return raw, nil
}

// shrink encodes img so that it fits: as PNG if being scaled to side is enough, else as JPEG, as small as need be. A format is that
// in which it does not fit.
func (f *Fitted) shrink(img image.Image, format string, room, side int) error {
	small := onWhite(scale(img, side))
	f.Smaller = small.Bounds().Size() != img.Bounds().Size()
	defer func() { f.Shown = small.Bounds().Size() }()
	if format != "jpeg" && (f.Smaller || format != "png") {
		if data, err := encodePNG(small); err == nil && base64.StdEncoding.EncodedLen(len(data)) <= room {
			f.set("image/png", data)
			return nil
		}
	}
	for range maxTries {
		data, err := encodeJPEG(small)
		if err != nil {
			return err
		}
		size := base64.StdEncoding.EncodedLen(len(data))
		if size <= room {
			f.set("image/jpeg", data)
			return nil
		}
		b := small.Bounds()
		shorter := int(0.9 * math.Sqrt(float64(room)/float64(size)) * float64(max(b.Dx(), b.Dy())))
		if shorter < minSide {
			break
		}
		small, f.Smaller = scale(small, shorter), true
	}
	return ErrNoRoom
}

// scale returns img with its longest side at most side pixels.
func scale(img image.Image, side int) image.Image {
	b := img.Bounds()
	longest := max(b.Dx(), b.Dy())
	if longest <= side {
		return img
	}
	small := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()*side/longest), max(1, b.Dy()*side/longest)))
	draw.CatmullRom.Scale(small, small.Bounds(), img, b, draw.Src, nil)
	return small
}

func encodePNG(img image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

func opaque(img image.Image) bool {
	m, ok := img.(interface{ Opaque() bool })
	return ok && m.Opaque()
}

// onWhite returns img if nothing shines through it, and else what it looks like on white: plots are dark on nothing.
func onWhite(img image.Image) image.Image {
	if opaque(img) {
		return img
	}
	if m, ok := img.(*image.Paletted); ok { // which stays one, and small
		onWhite := *m
		onWhite.Palette = slices.Clone(m.Palette)
		for i, c := range m.Palette {
			r, g, b, a := c.RGBA()
			rest := 0xffff - a
			onWhite.Palette[i] = color.RGBA64{R: uint16(r + rest), G: uint16(g + rest), B: uint16(b + rest), A: 0xffff}
		}
		return &onWhite
	}
	white := image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(white, white.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(white, white.Rect, img, img.Bounds().Min, draw.Over)
	return white
}

func encodeJPEG(img image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 85})
	return b.Bytes(), err
}

func (f *Fitted) set(mime string, data []byte) {
	f.MIME, f.Data = mime, base64.StdEncoding.EncodeToString(data)
}
