package mcpserver

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

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // decoded, and sent as PNG
)

const (
	// DefaultImageSide is the longest side, in pixels, that models look at; larger images are scaled down to it.
	DefaultImageSide = 1568
	// maxPixels bounds the images that are decoded at all: 200 MB of memory, and three times that for a progressive JPEG.
	maxPixels = 50_000_000
	// fewPixels is how many an image may have that is decoded beside others; of larger ones, one at a time is.
	fewPixels = 4_000_000
	// minSide is the longest side below which an image is left out rather than made smaller.
	minSide = 256
	// maxImage is the most that one image may take of a result, in bytes of base64: others want room too.
	maxImage = 400_000
	// minRoom is the room below which no image is tried, and the least that an image takes: it bounds their number.
	minRoom = 16_000
	// maxTries bounds the work for one image.
	maxTries = 4
)

// errNoRoom is returned for an image that does not fit even when it is made small.
var errNoRoom = errors.New("the images of this result are too large together")

// large is held by who decodes an image of more than fewPixels.
var large sync.Mutex

// fitted is an image that fits a result.
type fitted struct {
	block mcp.ImageContent
	// width and height are the original's; smaller tells that the block has fewer pixels.
	width, height int
	smaller       bool
	// shown is the size of the block's image where it is smaller.
	shown image.Point
	// dpi is how many pixels of the original are an inch, as it says itself; 0 if it does not.
	dpi float64
	// pictures is how many an animation has of which the block is the first; 1 or less for what is none.
	pictures int
}

const (
	// leastDPI is how many pixels an inch must have so that a plot's writing, some ten points high, can be read.
	leastDPI = 36
	// anyDPI is what programs write into photographs that have no inch.
	anyDPI = 72
	// tooSmall is how many times smaller an image is that nobody can read any more, of those that do not say what an inch is.
	tooSmall = 4
)

// unreadable tells whether the writing of an image that was made smaller is too small.
func (f *fitted) unreadable() bool {
	times := float64(f.width) / float64(f.shown.X)
	if f.dpi > anyDPI {
		return f.dpi/times < leastDPI
	}
	return times > tooSmall
}

// fitImage makes an image block of an image in base64 that fits the budget. PNG and JPEG that fit go as they are; others
// are scaled down and encoded again, as JPEG where PNG is too large. What shines through is put on white, as notebooks show it: on
// what a model's provider puts it nobody knows. All are read to their end first: clients pass
// images on, and a model's provider refuses every later request of a conversation that holds a broken one.
func fitImage(mime, encoded string, b budget) (fitted, error) {
	room := min(b.images, maxImage)
	if room < minRoom {
		return fitted{}, errNoRoom
	}
	raw, err := decodeBase64(encoded)
	if err != nil {
		return fitted{}, err
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return fitted{}, fmt.Errorf("%s cannot be decoded: %w", mime, err)
	}
	if config.Width <= 0 || config.Height <= 0 {
		return fitted{}, fmt.Errorf("%s has no pixels", mime)
	}
	if config.Width > maxPixels/config.Height {
		return fitted{}, fmt.Errorf("%d×%d pixels are too many", config.Width, config.Height)
	}
	if config.Width*config.Height > b.pixels {
		return fitted{}, errNoRoom
	}
	fit := fitted{width: config.Width, height: config.Height, dpi: dpiOf(raw)}
	if format == "gif" {
		fit.pictures = gifPictures(raw)
	}
	if config.Width*config.Height > fewPixels {
		large.Lock()
		defer large.Unlock()
	}
	asIs := (format == "png" || format == "jpeg") && max(config.Width, config.Height) <= b.side &&
		base64.StdEncoding.EncodedLen(len(raw)) <= room
	if asIs && format == "png" && wholePNG(raw) {
		fit.block = imageBlock("image/png", raw)
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
		fit.block = imageBlock("image/"+format, raw)
		return fit, nil
	}
	return fit, fit.shrink(img, format, room, b.side)
}

// decodeBase64 also takes base64 in lines, as some kernels write it.
func decodeBase64(s string) ([]byte, error) {
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
func (f *fitted) shrink(img image.Image, format string, room, side int) error {
	small := onWhite(scale(img, side))
	f.smaller = small.Bounds().Size() != img.Bounds().Size()
	defer func() { f.shown = small.Bounds().Size() }()
	if format != "jpeg" && (f.smaller || format != "png") {
		if data, err := encodePNG(small); err == nil && base64.StdEncoding.EncodedLen(len(data)) <= room {
			f.block = imageBlock("image/png", data)
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
			f.block = imageBlock("image/jpeg", data)
			return nil
		}
		b := small.Bounds()
		shorter := int(0.9 * math.Sqrt(float64(room)/float64(size)) * float64(max(b.Dx(), b.Dy())))
		if shorter < minSide {
			break
		}
		small, f.smaller = scale(small, shorter), true
	}
	return errNoRoom
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

func imageBlock(mime string, data []byte) mcp.ImageContent {
	return mcp.NewImageContent(base64.StdEncoding.EncodeToString(data), mime)
}
