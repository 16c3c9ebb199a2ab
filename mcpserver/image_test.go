package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
	"cellblock/sessions"
)

func TestImagesFitTheBudget(t *testing.T) {
	large := display("image/png", drawing(3000, 200, false))
	outs := []kernels.Output{large}
	for i := range 30 {
		outs = append(outs, display("image/png", photo(500, 400+i)))
	}
	blocks := render(outs...)
	got := dump(blocks)
	_, size := chars(blocks)
	if size > defaultBudget.images {
		t.Errorf("%d bytes of images", size)
	}
	if !strings.HasPrefix(got, "── image image/png 1568×104\n"+text("[scaled down from 3000×200 pixels]")+"── image image/jpeg ") {
		t.Errorf("got\n%s", got)
	}
	shown := strings.Count(got, "── image")
	if shown < 5 || !strings.Contains(got, fmt.Sprintf("[%d images left out: the images of this result are too large together; show fewer", len(outs)-shown)) {
		t.Errorf("%d shown:\n%s", shown, got)
	}
}

// Of images that there is no room for one line tells, unless there is more to tell of them.
func TestImagesWithoutRoom(t *testing.T) {
	none := defaultBudget
	none.images = 0
	at := place{session: "s", execution: 3}
	plot := display("image/png", drawing(40, 30, false), "text/plain", "<Figure size 40x30 with 1 Axes>")
	named, said := display("image/png", drawing(41, 30, false), "text/plain", "a map"), kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: "said\n"}
	const why, kept = " left out: the images of this result are too large together; show fewer or smaller ones in one cell", "; kept as cellblock://sessions/s/executions/3/outputs/"
	for name, tt := range map[string]struct {
		outs []kernels.Output
		want string
	}{
		"one":        {[]kernels.Output{plot}, text("[image/png" + why + kept + "0]")},
		"in a row":   {[]kernels.Output{plot, plot, plot}, text("[3 images" + why + kept + "0, and so on to 2]")},
		"two rows":   {[]kernels.Output{plot, plot, said, plot}, text("[2 images"+why+kept+"0, and so on to 1]") + text("said") + text("[image/png"+why+kept+"3]")},
		"with words": {[]kernels.Output{plot, named, plot}, text("[image/png"+why+kept+"0]") + text("a map\n[image/png"+why+kept+"1]") + text("[image/png"+why+kept+"2]")},
	} {
		shown := newArea()
		shown.place = at
		for i, out := range tt.outs {
			shown.index = i
			shown.add(out)
		}
		if got := dump(shown.blocks(none, bounds{})); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// photo is a PNG of colours that flow, with some noise: far larger than a JPEG of it.
func photo(w, h int) string {
	return pictureOf(w, h, func(noise uint32, done float64) byte { return byte(100+100*done) + byte(noise>>28) })
}

// What is there is shared: of many images none is whole before another is not seen at all.
func TestImagesShareTheirRoom(t *testing.T) {
	outs := []kernels.Output{display("image/png", drawing(40, 30, false))}
	for i := range 8 {
		outs = append(outs, display("image/png", photo(900, 800+i)))
	}
	blocks := render(outs...)
	got := dump(blocks)
	if n := strings.Count(got, "── image image/jpeg"); n != 8 || !strings.HasPrefix(got, "── image image/png 40×30") {
		t.Fatalf("%d images of 8:\n%s", n, got)
	}
	for _, block := range blocks[1:] {
		if image, ok := block.(mcp.ImageContent); ok && (len(image.Data) < 2*leastShare/3 || len(image.Data) > 2*defaultBudget.images/8) {
			t.Errorf("one takes %d bytes", len(image.Data))
		}
	}
}

func TestShare(t *testing.T) {
	const few, much = 10_000, 400_000
	for _, tt := range []struct {
		name  string
		room  int
		sizes []int
		want  int
	}{
		{"alone", 300_000, []int{much}, 300_000},
		{"all fit", 900_000, []int{much, much}, 900_000},
		{"evenly", 900_000, []int{much, much, much}, 300_000},
		{"small ones leave theirs to large ones", 900_000, []int{few, much, few, much, much, much}, 220_000},
		{"too many", 900_000, slices.Repeat([]int{much}, 100), leastShare},
		{"little is left", 20_000, []int{much, much}, 20_000},
		{"nothing is left", 0, []int{much}, 0},
		{"none", 5, nil, 5},
	} {
		if got := share(tt.room, tt.sizes); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A picture that comes again costs a model as much again, and tells nothing.
func TestImageAgain(t *testing.T) {
	a, b := display("image/png", drawing(40, 30, false)), display("image/png", drawing(50, 30, false), "text/plain", "<Figure size 50x30 with 1 Axes>")
	value := a
	value.Kind = kernels.OutputResult
	said := kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: "said\n"}
	broken := func(said string) kernels.Output { return display("image/png", "AAAA", "text/plain", said) }
	const left = "[image/png left out: image/png cannot be decoded: image: unknown format]"
	const imageA, imageB = "── image image/png 40×30\n", "── image image/png 50×30\n"
	for name, tt := range map[string]struct {
		outs []kernels.Output
		want string
	}{
		"shown, then the value": {[]kernels.Output{a, value}, imageA + text("[the same image again]")},
		"behind others":         {[]kernels.Output{a, b, said, a}, imageA + imageB + text("said") + text("[the same image again]")},
		"in a row":              {[]kernels.Output{a, b, a, b, a, said, b}, imageA + imageB + text("[3 images of before again]") + text("said") + text("[the same image again]")},
		"others":                {[]kernels.Output{a, b}, imageA + imageB},
		"not shown before":      {[]kernels.Output{broken("one"), broken("two")}, text("one\n"+left) + text("two\n"+left)},
		"no images":             {[]kernels.Output{display("", "x", "text/plain", "one"), display("", "x", "text/plain", "two")}, text("one") + text("two")},
	} {
		if got := dump(render(tt.outs...)); got != tt.want {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

// A broken image would make a model's provider refuse the whole conversation.
func TestBrokenImageIsNotPassedOn(t *testing.T) {
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewRGBA(image.Rect(0, 0, 40, 30)), nil); err != nil {
		t.Fatal(err)
	}
	for _, encoded := range []string{drawing(40, 30, true), base64.StdEncoding.EncodeToString(photo.Bytes())} {
		raw, _ := base64.StdEncoding.DecodeString(encoded)
		cut := base64.StdEncoding.EncodeToString(raw[:len(raw)-len(raw)/3])
		got := dump(render(display("image/png", cut, "text/plain", "a plot")))
		if strings.Contains(got, "── image") || !strings.Contains(got, "cannot be decoded") {
			t.Errorf("got %s", got)
		}
	}
}

func TestImagesAreBoundedInNumberAndWork(t *testing.T) {
	var outs []kernels.Output
	for i := range 1000 {
		outs = append(outs, display("image/png", drawing(2, 2+i, false)))
	}
	got := dump(render(outs...))
	if n := strings.Count(got, "── image"); n < 20 || n > 60 {
		t.Errorf("%d small images", n)
	}
	a, b := newArea(), defaultBudget
	for i := range 8 {
		a.add(display("image/png", drawing(700, 600-i, false)))
	}
	b.pixels = 4*700*600 + 1
	if n := strings.Count(dump(a.blocks(b, bounds{})), "── image"); n != 4 {
		t.Errorf("%d images were decoded, and there was room for the pixels of 4", n)
	}
}

// What comes late is shown as large as what comes in time.
func TestLateImagesKeepTheirSize(t *testing.T) {
	s := &service{budget: defaultBudget}
	got := dump(s.lateBlocks(sessions.Late{Number: 1, Outputs: []kernels.Output{display("image/png", drawing(40, 30, false))}}))
	if !strings.Contains(got, "── image image/png 40×30") {
		t.Errorf("got %s", got)
	}
}

func TestImageBomb(t *testing.T) {
	raw, _ := base64.StdEncoding.DecodeString(drawing(1, 1, false))
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
		{"as it is", drawing(40, 30, false), true, nil},
		{"scaled down", drawing(3000, 20, false), true, original},
		{"as JPEG, in its size", drawing(600, 600, true), true, original},
		{"for a client without links", drawing(3000, 20, false), false, nil},
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
	image, note, _ := bundleImage(mimeBundle{"image/png": json.RawMessage(`"` + drawing(300, 7000, false) + `"`)}, &b, b.images, "")
	if image == nil || note != "[scaled down from 300×7000 to 67×1568 pixels, too small to read: show less in one image]" {
		t.Error(note)
	}
	a := newArea()
	a.add(kernels.Output{Kind: kernels.OutputDisplay, Data: mimeBundle{"text/plain": json.RawMessage(`"<Figure size 640x480 with 0 Axes>"`)}})
	if got := a.blocks(defaultBudget, bounds{}); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

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
