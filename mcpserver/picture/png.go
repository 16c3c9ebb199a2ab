package picture

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"hash/crc32"
	"io"
	"sync"
)

// wholePNG tells that a PNG would be decoded to its end without an error, and makes no image of it: that takes half the
// time and no memory, and nearly every plot goes to the client as it is. It knows what plots are made of (PNG §11.2:
// whole bytes of gray or true colour without alpha, not interlaced); of all else it says no, and only a decoder can tell.
func wholePNG(raw []byte) bool {
	p, ok := readPNG(raw)
	return ok && p.pixelsWhole()
}

// pngData is what the pixels of a PNG are read from.
type pngData struct {
	// rows and row are the number and length of its lines, in bytes, with the filter's type before each (PNG §9).
	rows, row int
	// idat is the data of all IDAT chunks: a zlib stream.
	idat []byte
}

const pngSignature = "\x89PNG\r\n\x1a\n"

// readPNG reads the chunks (PNG §5.3) and their check sums.
func readPNG(raw []byte) (p pngData, ok bool) {
	rest, found := bytes.CutPrefix(raw, []byte(pngSignature))
	if !found {
		return p, false
	}
	last := ""
	for last != "IEND" {
		if len(rest) < 12 {
			return p, false
		}
		size := binary.BigEndian.Uint32(rest)
		if uint64(size) > uint64(len(rest)-12) {
			return p, false
		}
		name, data, sum := string(rest[4:8]), rest[8:8+size], rest[8+size:]
		if crc32.ChecksumIEEE(rest[4:8+size]) != binary.BigEndian.Uint32(sum) || (last == "") != (name == "IHDR") {
			return p, false
		}
		switch {
		case name == "IHDR":
			ok = p.header(data)
		case name == "IDAT" && (p.idat == nil || last == "IDAT"):
			if p.idat == nil {
				p.idat = make([]byte, 0, len(rest))
			}
			p.idat, ok = append(p.idat, data...), true
		case name == "IEND":
			ok = size == 0
		default: // one that changes how pixels are read is not known here; of others the sum is enough
			ok = name[0]&0x20 != 0 && name != "tRNS"
		}
		if !ok {
			return p, false
		}
		last, rest = name, sum[4:]
	}
	return p, true
}

// header reads IHDR (PNG §11.2.1).
func (p *pngData) header(data []byte) bool {
	if len(data) != 13 || data[8] != 8 || string(data[10:]) != "\x00\x00\x00" {
		return false
	}
	channels, ok := map[byte]uint64{0: 1, 2: 3}[data[9]]
	width, height := uint64(binary.BigEndian.Uint32(data)), uint64(binary.BigEndian.Uint32(data[4:]))
	if !ok || width == 0 || height == 0 || width > maxPixels || height > maxPixels/width {
		return false
	}
	p.rows, p.row = int(height), int(1+width*channels)
	return true
}

// dpiOf returns how many pixels of a PNG are an inch (PNG §11.3.5.3), 0 if it does not say.
func dpiOf(raw []byte) float64 {
	const perMeter, inch = 1, 0.0254
	if !bytes.HasPrefix(raw, []byte(pngSignature)) {
		return 0
	}
	before, _, _ := bytes.Cut(raw, []byte("IDAT"))
	_, data, said := bytes.Cut(before, []byte("pHYs"))
	if !said || len(data) < 9 || data[8] != perMeter {
		return 0
	}
	return float64(binary.BigEndian.Uint32(data)) * inch
}

// inflater is what reading a zlib stream takes; they are used again.
type inflater struct {
	flate  io.ReadCloser
	source *bytes.Reader
	buffer [32 << 10]byte
}

var inflaters = sync.Pool{New: func() any {
	source := new(bytes.Reader)
	return &inflater{flate: flate.NewReader(source), source: source}
}}

// pixelsWhole tells that there are as many bytes of pixels as there should be, with the sum that zlib gives them, that each
// line's filter is one that there is, and that nothing follows.
func (p *pngData) pixelsWhole() bool {
	const header = 2 // RFC 1950 §2.2
	if len(p.idat) < header || p.idat[0]&0x0f != 8 || p.idat[0]>>4 > 7 || p.idat[1]&0x20 != 0 || binary.BigEndian.Uint16(p.idat)%31 != 0 {
		return false
	}
	f := inflaters.Get().(*inflater)
	defer func() {
		f.source.Reset(nil)
		inflaters.Put(f)
	}()
	f.source.Reset(p.idat[header:])
	err := f.flate.(flate.Resetter).Reset(f.source, nil)
	sum := adler32.New()
	for at, size := 0, p.rows*p.row; err == nil; {
		var n int
		n, err = f.flate.Read(f.buffer[:])
		_, _ = sum.Write(f.buffer[:n])
		for line := (at + p.row - 1) / p.row * p.row; line < at+n; line += p.row {
			if f.buffer[line-at] > 4 {
				return false
			}
		}
		if at += n; at > size {
			return false
		}
		if errors.Is(err, io.EOF) {
			return at == size && bytes.Equal(p.idat[len(p.idat)-f.source.Len():], sum.Sum(nil))
		}
	}
	return false
}
