// Package jsontext is for JSON whose texts have many MiB: it writes them bit by bit, where encoding/json holds all that it
// writes in memory, several times over while that grows, and reads it in one pass and without copies, where encoding/json
// looks at each byte of each level twice.
package jsontext

import (
	"io"
	"unicode/utf8"
)

// piece is how much of a text is written at once, in bytes.
const piece = 4 << 10

// Writer writes texts as JSON strings, as Append does. It is not for concurrent use.
type Writer struct {
	out           io.Writer
	plain, quoted []byte // a piece on its way to out
}

// NewWriter returns a Writer to out, which is to be buffered if many small writes are dear.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write writes a text.
func (w *Writer) Write(text string) error {
	_, err := io.WriteString(w.out, `"`)
	for err == nil && len(text) > 0 {
		end := wholeEnd(text, min(piece, len(text)))
		err = w.inner(text[:end])
		text = text[end:]
	}
	if err == nil {
		_, err = io.WriteString(w.out, `"`)
	}
	return err
}

// wholeEnd returns where a text is cut so that characters stay whole: at end, or where the character begins that goes on there. Bytes
// that are of no character may be parted.
func wholeEnd(text string, end int) int {
	if end == len(text) {
		return end
	}
	for start := end - 1; start >= max(0, end-utf8.UTFMax+1); start-- {
		if utf8.RuneStart(text[start]) {
			if utf8.FullRuneInString(text[start:end]) {
				return end
			}
			return start
		}
	}
	return end
}

// inner writes what stands between the quotes.
func (w *Writer) inner(text string) error {
	w.plain = append(w.plain[:0], text...)
	w.quoted = appendInner(w.quoted[:0], w.plain)
	_, err := w.out.Write(w.quoted)
	return err
}

// Size is how many bytes a text takes when it is written.
func Size(text string) int {
	var n counter
	_ = NewWriter(&n).Write(text) // it only counts
	return int(n)
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
