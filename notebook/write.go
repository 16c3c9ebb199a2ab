package notebook

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"cellblock/internal/jsontext"
)

// Write writes the notebook's file, in the form in which Jupyter writes it: sorted keys, one blank of indentation. It takes
// no memory that depends on how large the file is.
func (n *Notebook) Write(w io.Writer) error {
	e := newEncoder(w)
	e.object(0,
		field{"cells", func(depth int) {
			e.list(depth, len(n.Cells), func(i, depth int) { e.cell(depth, n.Cells[i]) })
		}},
		field{"metadata", e.value(orEmpty(n.Metadata))},
		field{"nbformat", e.value(Format)},
		field{"nbformat_minor", e.value(Minor)},
	)
	e.raw("\n")
	return errors.Join(e.err, e.out.Flush())
}

// Text is the notebook's file as one text, which takes no more memory than it is long.
func (n *Notebook) Text() (string, error) {
	var size counter
	if err := n.Write(&size); err != nil {
		return "", err
	}
	var b strings.Builder
	b.Grow(int(size))
	err := n.Write(&b)
	return b.String(), err
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// encoder writes JSON bit by bit. Its first error stays: out keeps its own.
type encoder struct {
	out   *bufio.Writer
	texts *jsontext.Writer // to out
	err   error            // a value cannot be written
}

// field is one of an object's.
type field struct {
	name  string
	write func(depth int)
}

func newEncoder(w io.Writer) *encoder {
	out := bufio.NewWriterSize(w, 64<<10)
	return &encoder{out: out, texts: jsontext.NewWriter(out)}
}

func (e *encoder) raw(s string) { _, _ = e.out.WriteString(s) }

func (e *encoder) newline(depth int) {
	e.raw("\n")
	for range depth {
		e.raw(" ")
	}
}

// object writes an object whose fields come in their order.
func (e *encoder) object(depth int, fields ...field) {
	e.raw("{")
	for i, f := range fields {
		if i > 0 {
			e.raw(",")
		}
		e.newline(depth + 1)
		e.text(f.name)
		e.raw(": ")
		f.write(depth + 1)
	}
	if len(fields) > 0 {
		e.newline(depth)
	}
	e.raw("}")
}

// list writes a list of n items.
func (e *encoder) list(depth, n int, item func(i, depth int)) {
	e.raw("[")
	for i := range n {
		if i > 0 {
			e.raw(",")
		}
		e.newline(depth + 1)
		item(i, depth+1)
	}
	if n > 0 {
		e.newline(depth)
	}
	e.raw("]")
}

// text writes a text.
func (e *encoder) text(s string) { _ = e.texts.Write(s) }

// lines writes a text as notebooks have it: its lines, so that a difference between two files is one of lines.
func (e *encoder) lines(text string) func(depth int) {
	return func(depth int) {
		n := strings.Count(text, "\n")
		if text != "" && !strings.HasSuffix(text, "\n") {
			n++
		}
		e.list(depth, n, func(_, _ int) {
			end := strings.IndexByte(text, '\n') + 1
			if end == 0 {
				end = len(text)
			}
			e.text(text[:end])
			text = text[end:]
		})
	}
}

// value writes any value.
func (e *encoder) value(v any) func(depth int) {
	return func(depth int) {
		if s, ok := v.(string); ok {
			e.text(s)
			return
		}
		var b bytes.Buffer
		whole := json.NewEncoder(&b)
		whole.SetEscapeHTML(false)
		whole.SetIndent(strings.Repeat(" ", depth), " ")
		e.err = cmp.Or(e.err, whole.Encode(v))
		_, _ = e.out.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	}
}

// values writes an object of which nothing is known.
func (e *encoder) values(o Object) func(depth int) {
	return func(depth int) {
		var fields []field
		for _, name := range slices.Sorted(maps.Keys(o)) {
			fields = append(fields, field{name, e.value(o[name])})
		}
		e.object(depth, fields...)
	}
}

func (e *encoder) cell(depth int, c *Cell) {
	about := []field{
		{"cell_type", e.value(string(c.Type))}, {"id", e.value(c.ID)}, {"metadata", e.value(orEmpty(c.Metadata))}, {"source", e.lines(c.Source)},
	}
	switch {
	case c.Type == Code:
		about = slices.Insert(about, 1, field{"execution_count", e.value(countOf(c.ExecutionCount))})
		about = slices.Insert(about, 4, field{"outputs", func(depth int) {
			e.list(depth, len(c.Outputs), func(i, depth int) { e.output(depth, c.Outputs[i]) })
		}})
	case len(c.Attachments) > 0:
		about = slices.Insert(about, 0, field{"attachments", e.value(c.Attachments)})
	}
	e.object(depth, about...)
}

func (e *encoder) output(depth int, o *Output) {
	kind := field{"output_type", e.value(string(o.Type))}
	switch o.Type {
	case Stream:
		e.object(depth, field{"name", e.value(o.Name)}, kind, field{"text", e.lines(o.Text)})
	case Error:
		traceback := func(depth int) {
			e.list(depth, len(o.Traceback), func(i, _ int) { e.text(o.Traceback[i]) })
		}
		e.object(depth, field{"ename", e.value(o.EName)}, field{"evalue", e.value(o.EValue)}, kind, field{"traceback", traceback})
	case Result:
		e.object(depth, field{"data", e.values(o.Data)}, field{"execution_count", e.value(countOf(o.ExecutionCount))},
			field{"metadata", e.value(orEmpty(o.Metadata))}, kind)
	default:
		e.object(depth, field{"data", e.values(o.Data)}, field{"metadata", e.value(orEmpty(o.Metadata))}, kind)
	}
}

// countOf is an execution count as it is written: null for none.
func countOf(n int) any {
	if n <= 0 {
		return nil
	}
	return n
}

func orEmpty(o Object) Object {
	if o == nil {
		return Object{}
	}
	return o
}
