package mcpserver

import (
	"encoding/binary"
	"image"
	"image/color"
	"math"
	"runtime"
	"sync"

	"golang.org/x/image/draw"
)

// scale returns img with its longest side at most side pixels. What becomes less than half is made smaller by a whole factor
// first, whose pixels are plain means, and only then filtered: that is a quarter of the filter's work, and looks the same.
// Beside the result only a few lines are held, in whatever form img has its pixels.
func scale(img image.Image, side int) image.Image {
	b := img.Bounds()
	longest := max(b.Dx(), b.Dy())
	if longest <= side {
		return img
	}
	small := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()*side/longest), max(1, b.Dy()*side/longest)))
	s := newScaler(img, small)
	height := small.Rect.Dy()
	n := min(runtime.GOMAXPROCS(0), 1+height/minBand)
	var bands sync.WaitGroup
	for i := range n {
		bands.Go(func() { s.scale(height*i/n, height*(i+1)/n) })
	}
	bands.Wait()
	return small
}

const (
	// minBand is how many lines are worth a goroutine, which reads those around them once more.
	minBand = 64
	// maxFactor is how many pixels of one direction are one cell at most: the sum of 16×16 bytes has 16 bits.
	maxFactor = 16
)

// scaler makes small of img.
type scaler struct {
	img   image.Image
	small *image.RGBA
	// nx×ny pixels are a cell, which is one pixel to the filter. wide is how many cells a line has.
	nx, ny, wide int
	// across and down are the cells that a column and a line of small are made of.
	across, down []taps
}

// taps are the cells from first on, whose sums of pixels count by their weights.
type taps struct {
	first   int
	weights []float32
}

func newScaler(img image.Image, small *image.RGBA) *scaler {
	s := &scaler{img: img, small: small}
	s.nx, s.wide, s.across = reduction(img.Bounds().Dx(), small.Rect.Dx())
	s.ny, _, s.down = reduction(img.Bounds().Dy(), small.Rect.Dy())
	return s
}

// reduction returns how size pixels of one direction become as few as smaller: by which whole factor, how many cells that
// makes, and which of them become each pixel.
func reduction(size, smaller int) (factor, cells int, of []taps) {
	factor = min(size/smaller, maxFactor)
	cells = (size + factor - 1) / factor
	ratio := float64(size) / float64(factor*smaller)
	of = make([]taps, smaller)
	for i := range of {
		of[i] = tapsAround((float64(i)+0.5)*ratio, ratio, cells)
		for j := range of[i].weights { // of a mean, where the last cell may have fewer pixels
			of[i].weights[j] /= float32(min(factor, size-factor*(of[i].first+j)))
		}
	}
	return factor, cells, of
}

// tapsAround are the taps of a pixel with its middle at a place among the cells, of which ratio become one pixel.
func tapsAround(middle, ratio float64, cells int) taps {
	kernel := draw.CatmullRom
	reach := kernel.Support * ratio
	first, end := max(0, int(middle-reach)), min(cells, int(math.Ceil(middle+reach)))
	t, sum := taps{first: first, weights: make([]float32, end-first)}, float32(0)
	for i := range t.weights {
		if far := math.Abs(float64(first+i)+0.5-middle) / ratio; far < kernel.Support {
			t.weights[i] = float32(kernel.At(far))
		}
		sum += t.weights[i]
	}
	for i := range t.weights {
		t.weights[i] /= sum
	}
	return t
}

// band is what one goroutine works with. Its lines have four numbers a pixel.
type band struct {
	*scaler
	source *lines
	// pairs and line are one line of cells. held are the lines of cells before next, filtered across, each at its number
	// modulo theirs.
	pairs []pair
	line  []float32
	held  [][]float32
	next  int
	// sums are the line of small that is being made.
	sums []float32
}

// scale makes some lines of small.
func (s *scaler) scale(from, to int) {
	most, width := 0, 4*s.small.Rect.Dx()
	for _, t := range s.down[from:to] {
		most = max(most, len(t.weights))
	}
	b := &band{
		scaler: s, source: newLines(s.img), pairs: make([]pair, s.wide), line: make([]float32, 4*s.wide),
		held: make([][]float32, most), next: s.down[from].first, sums: make([]float32, width),
	}
	for i := range b.held {
		b.held[i] = make([]float32, width)
	}
	for y := from; y < to; y++ {
		b.make(s.down[y], s.small.Pix[y*s.small.Stride:])
	}
}

// make makes the next line of small. Each line of cells is read once, and held while it is among the taps.
func (b *band) make(t taps, to []uint8) {
	for ; b.next < t.first+len(t.weights); b.next++ {
		b.cells(b.next)
		filter(b.across, b.line, b.held[b.next%len(b.held)])
	}
	clear(b.sums)
	for i, w := range t.weights {
		addTimes(w, b.held[(t.first+i)%len(b.held)], b.sums)
	}
	round(b.sums, to)
}

// cells makes a line of cells: the sums of their pixels.
func (b *band) cells(y int) {
	clear(b.pairs)
	for i := y * b.ny; i < min((y+1)*b.ny, b.img.Bounds().Dy()); i++ {
		addCells(b.source.at(i), b.nx, b.pairs)
	}
	for i, p := range b.pairs {
		to := b.line[4*i : 4*i+4]
		to[0], to[1] = float32(p.rb&0xffff), float32(p.ga&0xffff)
		to[2], to[3] = float32(p.rb>>16), float32(p.ga>>16)
	}
}

// pair is the sum of a cell's pixels: of red and blue, and of green and alpha, with 16 bits for each, so that both are added
// at once.
type pair struct{ rb, ga uint32 }

func addCells(line []uint8, nx int, to []pair) {
	for i := range to {
		cell := line[:min(4*nx, len(line))]
		line = line[len(cell):]
		sum := to[i]
		for ; len(cell) >= 4; cell = cell[4:] {
			pixel := binary.LittleEndian.Uint32(cell)
			sum.rb += pixel & 0x00ff00ff
			sum.ga += pixel >> 8 & 0x00ff00ff
		}
		to[i] = sum
	}
}

func addTimes(weight float32, line, to []float32) {
	line = line[:len(to)]
	for i := range to {
		to[i] += weight * line[i]
	}
}

// filter makes pixels of a line of cells.
func filter(across []taps, cells, to []float32) {
	for x, t := range across {
		var r, g, b, a float32
		from := cells[4*t.first:]
		for _, w := range t.weights {
			r += w * from[0]
			g += w * from[1]
			b += w * from[2]
			a += w * from[3]
			from = from[4:]
		}
		to := to[4*x : 4*x+4]
		to[0], to[1], to[2], to[3] = r, g, b, a
	}
}

// round makes bytes of sums. At edges the kernel goes beyond their range, and colours beyond their alpha.
func round(sums []float32, to []uint8) {
	for i := 0; i+4 <= len(sums); i += 4 {
		a := min(max(sums[i+3]+0.5, 0), 255)
		to[i] = uint8(min(max(sums[i]+0.5, 0), a))
		to[i+1] = uint8(min(max(sums[i+1]+0.5, 0), a))
		to[i+2] = uint8(min(max(sums[i+2]+0.5, 0), a))
		to[i+3] = uint8(a)
	}
}

// lines reads the lines of an image as image.RGBA has them.
type lines struct {
	img     image.Image
	buffer  *image.RGBA
	palette [256][4]uint8
}

func newLines(img image.Image) *lines {
	l := &lines{img: img, buffer: image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), 1))}
	if m, ok := img.(*image.Paletted); ok {
		for i, c := range m.Palette {
			c := color.RGBAModel.Convert(c).(color.RGBA)
			l.palette[i] = [4]uint8{c.R, c.G, c.B, c.A}
		}
	}
	return l
}

// at is a line, counted from the top. It is valid until the next call.
func (l *lines) at(y int) []uint8 {
	b := l.img.Bounds()
	switch m := l.img.(type) {
	case *image.RGBA:
		return m.Pix[y*m.Stride:][:4*b.Dx()]
	case *image.NRGBA:
		if line := m.Pix[y*m.Stride:][:4*b.Dx()]; opaque(line) { // then it has the same bytes
			return line
		}
	case *image.Paletted:
		for x, i := range m.Pix[y*m.Stride:][:b.Dx()] {
			copy(l.buffer.Pix[4*x:], l.palette[i][:])
		}
		return l.buffer.Pix
	}
	draw.Draw(l.buffer, l.buffer.Rect, l.img, image.Pt(b.Min.X, b.Min.Y+y), draw.Src)
	return l.buffer.Pix
}

// opaque tells whether nothing shines through the pixels of a line.
func opaque(line []uint8) bool {
	all := ^uint32(0)
	for ; len(line) >= 4; line = line[4:] {
		all &= binary.LittleEndian.Uint32(line)
	}
	return all>>24 == 0xff
}
