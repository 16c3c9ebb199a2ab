package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"
)

// pngChunk is one chunk of a PNG with the check sum that it should have.
func pngChunk(name string, data ...byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), name...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func deflated(data []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// grayPNG is a PNG of 2×2 pixels in gray with those chunks behind its header.
func grayPNG(chunks ...[]byte) []byte {
	return slices.Concat([]byte(pngSignature), pngChunk("IHDR", 0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 0), slices.Concat(chunks...), pngChunk("IEND"))
}

// noisy is a PNG in colours of which nothing can be left out: it has several chunks of data.
func noisy(t *testing.T, w, h int) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	noise := uint32(1)
	for i := range img.Pix {
		noise = noise*1664525 + 1013904223
		if img.Pix[i] = byte(noise >> 24); i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	data, err := encodePNG(img)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWholePNG(t *testing.T) {
	pixels := deflated([]byte{0, 1, 2, 4, 3, 4})
	colours := noisy(t, 300, 200)
	wrongSum := bytes.Clone(pixels)
	wrongSum[len(wrongSum)-1]++
	broken := bytes.Clone(colours)
	broken[len(broken)/2]++
	var palette, alpha, wide bytes.Buffer
	png.Encode(&palette, image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.Black, color.White}))
	png.Encode(&alpha, image.NewNRGBA(image.Rect(0, 0, 2, 2)))
	png.Encode(&wide, image.NewGray16(image.Rect(0, 0, 2, 2)))
	for _, tt := range []struct {
		name string
		raw  []byte
		want bool
	}{
		{"gray", grayPNG(pngChunk("IDAT", pixels...)), true},
		{"colours, in several chunks", colours, true},
		{"chunks that say something about it", grayPNG(pngChunk("tEXt", 'a', 0, 'b'), pngChunk("IDAT", pixels...), pngChunk("tIME")), true},
		{"its data in two chunks", grayPNG(pngChunk("IDAT", pixels[:5]...), pngChunk("IDAT", pixels[5:]...)), true},
		{"bytes behind its end", append(grayPNG(pngChunk("IDAT", pixels...)), "more"...), true},
		{"a changed byte", broken, false},
		{"cut", colours[:len(colours)-len(colours)/3], false},
		{"without its end", bytes.TrimSuffix(grayPNG(pngChunk("IDAT", pixels...)), pngChunk("IEND")), false},
		{"without data", grayPNG(), false},
		{"its data apart", grayPNG(pngChunk("IDAT", pixels[:5]...), pngChunk("tEXt", 'a', 0, 'b'), pngChunk("IDAT", pixels[5:]...)), false},
		{"another header", grayPNG(pngChunk("IHDR", 0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 0), pngChunk("IDAT", pixels...)), false},
		{"too few pixels", grayPNG(pngChunk("IDAT", deflated([]byte{0, 1, 2, 4, 3})...)), false},
		{"too many pixels", grayPNG(pngChunk("IDAT", deflated([]byte{0, 1, 2, 4, 3, 4, 5})...)), false},
		{"a filter that there is not", grayPNG(pngChunk("IDAT", deflated([]byte{0, 1, 2, 5, 3, 4})...)), false},
		{"a wrong sum of its pixels", grayPNG(pngChunk("IDAT", wrongSum...)), false},
		{"no sum of its pixels", grayPNG(pngChunk("IDAT", pixels[:len(pixels)-4]...)), false},
		{"a wrong header of its pixels", grayPNG(pngChunk("IDAT", append([]byte{0x78, 0x9d}, pixels[2:]...)...)), false},
		{"a preset dictionary", grayPNG(pngChunk("IDAT", append([]byte{0x78, 0xbb}, pixels[2:]...)...)), false},
		{"more behind its pixels", grayPNG(pngChunk("IDAT", append(bytes.Clone(pixels), 7)...)), false},
		{"JPEG", jpegOf(t, 2, 2), false},
		// Whole, and only a decoder knows.
		{"a palette", palette.Bytes(), false},
		{"alpha", alpha.Bytes(), false},
		{"16 bits", wide.Bytes(), false},
		{"a transparent colour", grayPNG(pngChunk("tRNS", 0, 1), pngChunk("IDAT", pixels...)), false},
	} {
		if got := wholePNG(tt.raw); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	// What was read before leaves nothing behind, and an image costs no memory for its pixels.
	large := slices.Concat([]byte(pngSignature), pngChunk("IHDR", 0, 0, 4, 0, 0, 0, 4, 0, 8, 0, 0, 0, 0), pngChunk("IDAT", deflated(make([]byte, 1024*1025))...), pngChunk("IEND"))
	if n := testing.AllocsPerRun(20, func() {
		if !wholePNG(large) {
			t.Fatal("not whole")
		}
	}); n > 8 {
		t.Errorf("%v allocations", n)
	}
}

// What is said to be whole, a decoder reads to its end.
func FuzzWholePNG(f *testing.F) {
	pixels := deflated([]byte{0, 1, 2, 4, 3, 4})
	f.Add([]byte("IDAT"), pixels, []byte{8, 0, 0, 0, 0})
	f.Add([]byte("tEXt"), []byte("a\x00b"), []byte{8, 0, 0, 0, 0})
	f.Add([]byte("IDAT"), deflated(make([]byte, 18)), []byte{8, 6, 0, 0, 0})
	f.Fuzz(func(t *testing.T, name, data, kind []byte) {
		if len(name) != 4 || len(kind) != 5 {
			return
		}
		header := pngChunk("IHDR", append([]byte{0, 0, 0, 2, 0, 0, 0, 2}, kind...)...)
		for _, raw := range [][]byte{
			data,
			slices.Concat([]byte(pngSignature), header, pngChunk(string(name), data...), pngChunk("IEND")),
			slices.Concat([]byte(pngSignature), header, pngChunk(string(name), data...), pngChunk("IDAT", pixels...), pngChunk("IEND")),
			slices.Concat([]byte(pngSignature), header, pngChunk("IDAT", pixels...), pngChunk(string(name), data...), pngChunk("IEND")),
		} {
			if !wholePNG(raw) {
				continue
			}
			if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
				t.Errorf("said to be whole: %v", err)
			}
		}
	})
}
