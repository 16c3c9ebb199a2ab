// Package jsontext is for JSON whose texts have many MiB: it writes them bit by bit, where encoding/json holds all that it
// writes in memory, several times over while that grows, and reads it in one pass and without copies, where encoding/json
// looks at each byte of each level twice.
package jsontext

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// piece is how much of a text is written at once, in bytes.
const piece = 4 << 10

// Writer writes texts as JSON strings, as encoding/json would without escaping HTML. It is not for concurrent use.
type Writer struct {
	out   io.Writer
	small bytes.Buffer // a piece on its way to out
	quote *json.Encoder
}

// NewWriter returns a Writer to out, which is to be buffered if many small writes are dear.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{out: out}
	w.quote = json.NewEncoder(&w.small)
	w.quote.SetEscapeHTML(false)
	return w
}

// Write writes a text.
func (w *Writer) Write(text string) error {
	_, err := io.WriteString(w.out, `"`)
	for err == nil && len(text) > 0 {
		end := min(piece, len(text))
		for back := 1; end < len(text) && back < utf8.UTFMax && !utf8.RuneStart(text[end]); back++ {
			end-- // characters stay whole
		}
		err = w.inner(text[:end])
		text = text[end:]
	}
	if err == nil {
		_, err = io.WriteString(w.out, `"`)
	}
	return err
}

// inner writes what stands between the quotes.
func (w *Writer) inner(text string) error {
	w.small.Reset()
	if err := w.quote.Encode(text); err != nil {
		return err
	}
	quoted := w.small.Bytes()
	_, err := w.out.Write(quoted[1 : len(quoted)-2]) // the last is the line's end
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
