package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
	"cellblock/sessions"
)

func TestImagesFitTheBudget(t *testing.T) {
	large := display("image/png", picture(3000, 200, false))
	noisy := display("image/png", picture(600, 600, true))
	blocks := render(append([]kernels.Output{large}, slices.Repeat([]kernels.Output{noisy}, 6)...)...)
	got := dump(blocks)
	_, size := chars(blocks)
	if size > defaultBudget.images {
		t.Errorf("%d bytes of images", size)
	}
	if !strings.HasPrefix(got, "── image image/png 1568×104\n"+text("[scaled down from 3000×200 pixels]")+"── image image/jpeg ") {
		t.Errorf("got\n%s", got)
	}
	if !strings.Contains(got, "[image/png left out: the images of this result are too large together; show fewer") {
		t.Errorf("got\n%s", got)
	}
}

// A broken image would make a model's provider refuse the whole conversation.
func TestBrokenImageIsNotPassedOn(t *testing.T) {
	for _, encoded := range []string{picture(40, 30, true), base64.StdEncoding.EncodeToString(jpegOf(t, 40, 30))} {
		raw, _ := base64.StdEncoding.DecodeString(encoded)
		cut := base64.StdEncoding.EncodeToString(raw[:len(raw)-len(raw)/3])
		got := dump(render(display("image/png", cut, "text/plain", "a plot")))
		if strings.Contains(got, "── image") || !strings.Contains(got, "cannot be decoded") {
			t.Errorf("got %s", got)
		}
	}
}

func jpegOf(t *testing.T, w, h int) []byte {
	t.Helper()
	data, err := encodeJPEG(image.NewRGBA(image.Rect(0, 0, w, h)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestImagesAreBoundedInNumberAndWork(t *testing.T) {
	got := dump(render(slices.Repeat([]kernels.Output{display("image/png", picture(2, 2, false))}, 1000)...))
	if n := strings.Count(got, "── image"); n < 20 || n > 60 {
		t.Errorf("%d small images", n)
	}
	a, b := newArea(), defaultBudget
	for range 8 {
		a.add(display("image/png", picture(700, 600, false)))
	}
	b.pixels = 4*700*600 + 1
	if n := strings.Count(dump(a.blocks(b, bounds{})), "── image"); n != 4 {
		t.Errorf("%d images were decoded, and there was room for the pixels of 4", n)
	}
}

// What comes late is shown as large as what comes in time.
func TestLateImagesKeepTheirSize(t *testing.T) {
	s := &service{budget: defaultBudget}
	got := dump(s.lateBlocks(sessions.Late{Number: 1, Outputs: []kernels.Output{display("image/png", picture(40, 30, false))}}))
	if !strings.Contains(got, "── image image/png 40×30") {
		t.Errorf("got %s", got)
	}
}

func TestImageBomb(t *testing.T) {
	raw, _ := base64.StdEncoding.DecodeString(picture(1, 1, false))
	copy(raw[16:24], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // IHDR: 65535×65535
	got := dump(render(display("image/png", base64.StdEncoding.EncodeToString(raw))))
	if !strings.Contains(got, "left out") {
		t.Errorf("got %s", got)
	}
}

// Where a client knows resources, an image that was made smaller or converted says where the original is.
func TestImageNamesItsOriginal(t *testing.T) {
	const original = "cellblock://sessions/s/executions/3/outputs/7"
	for _, tt := range []struct {
		name  string
		image string
		links bool
		want  any
	}{
		{"as it is", picture(40, 30, false), true, nil},
		{"scaled down", picture(3000, 20, false), true, original},
		{"as JPEG, in its size", picture(600, 600, true), true, original},
		{"for a client without links", picture(3000, 20, false), false, nil},
	} {
		a := newArea()
		a.index, a.place = 7, place{session: "s", execution: 3, links: tt.links}
		a.add(display("image/png", tt.image))
		image := a.blocks(defaultBudget, bounds{})[0].(mcp.ImageContent)
		var got any
		if image.Meta != nil {
			got = image.Meta.AdditionalFields[OriginalMeta]
		}
		if got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// What cannot be read any more says so, and what there is not to see says nothing.
func TestTooSmallToRead(t *testing.T) {
	b := defaultBudget
	image, note := bundleImage(mimeBundle{"image/png": json.RawMessage(`"` + picture(300, 7000, false) + `"`)}, &b, "")
	if image == nil || note != "[scaled down from 300×7000 to 67×1568 pixels, too small to read: show less in one image]" {
		t.Error(note)
	}
	a := newArea()
	a.add(kernels.Output{Kind: kernels.OutputDisplay, Data: mimeBundle{"text/plain": json.RawMessage(`"<Figure size 640x480 with 0 Axes>"`)}})
	if got := a.blocks(defaultBudget, bounds{}); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// Of a PNG that will not fit no more is made than fits.
func TestPNGEndsWhereItDoesNotFit(t *testing.T) {
	img := figure(600, 400, true)
	whole, err := encodePNG(img, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	if fits, err := encodePNG(img, len(whole)); err != nil || !bytes.Equal(fits, whole) {
		t.Errorf("%d bytes where there is room for them: %v", len(fits), err)
	}
	for _, most := range []int{0, 2000, len(whole) - 1} {
		if some, err := encodePNG(img, most); !errors.Is(err, errNoRoom) || len(some) > most {
			t.Errorf("%d bytes where there is room for %d: %v", len(some), most, err)
		}
	}
}
