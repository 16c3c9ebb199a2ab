package viewer

import (
	"encoding/csv"
	"errors"
	"html/template"
	"io"
	"net/http"
	"path"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"cellblock/internal/filetype"
	"cellblock/sessions/files"
	"cellblock/web/render"
)

const (
	// maxPreview is how much of a file is read to be shown, in bytes.
	maxPreview = 256 << 10
	// maxRows and maxColumns bound a table, maxField one of its fields, in bytes.
	maxRows, maxColumns, maxField = 200, 50, 200
)

// previewView is a beginning of a file.
type previewView struct {
	ID string
	files.Entry
	Name string
	// One of these is set, or none for what cannot be shown.
	Picture bool
	Table   *table
	HTML    template.HTML
	// Encoding is what the text seems to be in, where that is not UTF-8.
	Encoding string
	// Shown is how much of the file is shown, in bytes, where that is not all.
	Shown int64
}

// table is a beginning of a CSV file.
type table struct {
	Head []string
	Rows [][]string
	// MoreRows and MoreColumns tell that there are some.
	MoreRows, MoreColumns bool
	numbers               []bool // of which columns all that is there is a number
}

// Number tells whether a column, counted from 0, has numbers, which stand one under the other at the right.
func (t *table) Number(column int) bool { return column < len(t.numbers) && t.numbers[column] }

// findNumbers finds out which columns have numbers.
func (t *table) findNumbers() {
	t.numbers = make([]bool, len(t.Head))
	for column := range t.numbers {
		t.numbers[column] = render.Numeric(func(yield func(string) bool) {
			for _, row := range t.Rows {
				if column < len(row) && !yield(row[column]) {
					return
				}
			}
		})
	}
}

// preview shows a file's beginning.
func (v *Viewer) preview(w http.ResponseWriter, r *http.Request, who visit) error {
	f, e, err := v.Sessions.OpenFile(r.Context(), who.owner, r.PathValue("id"), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPreview))
	if err != nil {
		return files.Pathless(err)
	}
	p := previewView{ID: r.PathValue("id"), Entry: e, Name: path.Base(e.Path)}
	p.show(text)
	return writeFragment(w, "preview", p)
}

// show decides how a file is shown of which so much was read.
func (p *previewView) show(text []byte) {
	head := text[:min(len(text), filetype.Sniffed)]
	if p.Picture = pictureType(p.Path, head) != ""; p.Picture {
		return
	}
	if p.Encoding = filetype.Encoding(head); p.Encoding == "" && !filetype.LooksLikeText(head) {
		return
	}
	if int64(len(text)) < p.Size {
		p.Shown = int64(len(text))
	}
	source := strings.ToValidUTF8(decoded(text, p.Encoding), "\uFFFD")
	kind := filetype.Named(p.Path)
	switch kind {
	case "text/csv", "text/tab-separated-values":
		p.Table = tableOf(source, kind)
	case "text/markdown":
		p.HTML = render.Markdown(source)
	case "application/json", "application/x-ipynb+json":
		if p.Shown == 0 {
			p.HTML = render.JSON([]byte(source))
		}
	}
	if p.Table == nil && p.HTML == "" {
		p.HTML = `<pre class="code">` + render.Code(strings.TrimPrefix(path.Ext(p.Path), "."), source) + `</pre>`
	}
}

// decoded is a text in an encoding that filetype.Encoding tells of, as far as that can be read.
func decoded(text []byte, name string) string {
	encodings := map[string]encoding.Encoding{
		"latin-1":   charmap.Windows1252, // which has what Latin-1 has, and more
		"utf-16":    unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
		"utf-16-le": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
		"utf-16-be": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	}
	if e := encodings[name]; e != nil {
		text, _ = e.NewDecoder().Bytes(text) // what is none of it is replaced
	}
	return strings.TrimPrefix(string(text), "\uFEFF")
}

// tableOf reads the beginning of a table; nil where it is none.
func tableOf(source, kind string) *table {
	in := csv.NewReader(strings.NewReader(source))
	in.Comma, in.FieldsPerRecord, in.LazyQuotes = comma(source, kind), -1, true
	t := &table{}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil
		}
		if len(t.Rows) == maxRows {
			t.MoreRows = true
			break
		}
		t.add(record)
	}
	if len(t.Head) == 0 {
		return nil
	}
	t.findNumbers()
	return t
}

// add adds a record: the first is the head.
func (t *table) add(record []string) {
	if len(record) > maxColumns {
		record, t.MoreColumns = record[:maxColumns], true
	}
	fields := make([]string, len(record))
	for i, field := range record {
		fields[i] = clipText(field, maxField)
	}
	if t.Head == nil {
		t.Head = fields
		return
	}
	t.Rows = append(t.Rows, fields)
}

// comma is what stands between fields: what the first line has most of.
func comma(source, kind string) rune {
	if kind == "text/tab-separated-values" {
		return '\t'
	}
	first, _, _ := strings.Cut(source, "\n")
	best := ','
	for _, c := range []rune{';', '\t'} {
		if strings.Count(first, string(c)) > strings.Count(first, string(best)) {
			best = c
		}
	}
	return best
}
