// Package htmltext makes text of HTML for those who cannot see it.
package htmltext

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"cellblock/internal/words"
)

// Of reduces HTML to the text that a browser would show, with its lines, lists and tables. It is for outputs that
// have no plainer form.
func Of(source string) string {
	w := writer{flow: newFlow(), blanks: len(source)}
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		switch z.Next() {
		case html.ErrorToken:
			w.player("")
			w.closeTables(0)
			return strings.Trim(w.b.String(), "\n") // a table's first row may begin with an empty cell
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, attributes := z.TagName()
			tag := atom.Lookup(name)
			a := attributesOf(z, attributes)
			w.open(tag, a)
			w.medium(tag, a.source)
		case html.EndTagToken:
			name, _ := z.TagName()
			w.close(atom.Lookup(name))
		}
	}
}

// writer joins texts as a browser lays them out: runs of white space are one space, blocks are lines.
type writer struct {
	flow
	silent  int       // depth of elements that show nothing
	waiting atom.Atom // a player whose address is not known yet; 0 for none
	tables  []*table  // those that are open, the innermost last
	deeper  int       // tables that are open within them, and count for nothing
	blanks  int       // columns that cells may yet span: short HTML must not make a long text
}

// flow is a text that is being laid out: the page's, or a table cell's.
type flow struct {
	b        *strings.Builder
	space    bool // white space is due before the next word
	newlines int  // line ends at the end of b
	bare     bool // b ends with a mark that has its space already
	pre      int  // depth of elements that keep white space
}

func newFlow() flow { return flow{b: new(strings.Builder)} }

func (w *writer) text(s string) {
	switch {
	case w.silent > 0 || s == "":
		return
	case w.pre > 0:
		w.write(s)
		return
	}
	words := strings.Fields(s)
	w.space = w.space || strings.TrimLeft(s, " \t\r\n") != s
	for _, word := range words {
		if w.space && w.b.Len() > 0 && w.newlines == 0 && !w.bare {
			w.write(" ")
		}
		w.write(word)
		w.space = true
	}
	w.space = len(words) == 0 && w.space || strings.TrimRight(s, " \t\r\n") != s
}

func (w *writer) write(s string) {
	w.b.WriteString(s)
	w.newlines, w.bare = len(s)-len(strings.TrimRight(s, "\n")), false
}

// line begins a new line, unless the text is at the start of one.
func (w *writer) line() {
	w.space = false
	if w.b.Len() > 0 && w.newlines == 0 {
		w.write("\n")
	}
}

func (w *writer) open(tag atom.Atom, a attributes) {
	switch tag {
	case atom.Script, atom.Style, atom.Head, atom.Template:
		w.silent++
	case atom.Pre:
		w.line()
		w.pre++
	case atom.Br:
		w.space = false
		w.write("\n")
	case atom.Li:
		w.line()
		w.write("- ")
		w.bare = true
	case atom.Table:
		w.line()
		w.openTable()
	case atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption:
		w.closeRow()
		w.line()
	case atom.Tr:
		w.openRow()
	case atom.Td, atom.Th:
		w.openCell(a)
	default:
		if isBlock(tag) {
			w.line()
		}
	}
}

// medium stands for what cannot be shown, with where it is. What is inside of a player is for browsers that have none, but for its
// sources, the first of which is where it is.
func (w *writer) medium(tag atom.Atom, source string) {
	switch {
	case isPlayer(tag):
		if w.silent == 0 {
			w.waiting = tag
		}
		if source != "" {
			w.player(source)
		}
		w.silent++
	case tag == atom.Source && source != "":
		w.player(source)
	case media[tag] != "":
		w.name(tag, source)
	}
}

// player names the player that waits for it, if one does.
func (w *writer) player(source string) {
	if w.waiting == 0 {
		return
	}
	tag, silent := w.waiting, w.silent
	w.waiting, w.silent = 0, 0
	w.name(tag, source)
	w.silent = silent
}

func (w *writer) name(tag atom.Atom, source string) {
	if source != "" {
		source = ": " + source
	}
	w.text(" [" + media[tag] + source + "] ")
}

func isPlayer(tag atom.Atom) bool { return tag == atom.Audio || tag == atom.Video }

// maxSource is the longest address that is told, in characters.
const maxSource = 200

// attributes are those of an element's that change its text.
type attributes struct {
	source        string // where it is; empty for none, and for content that stands for itself (data:)
	columns, rows int    // what a cell spans; 0 for one
}

// attributesOf reads those of the element that a tokenizer has just read.
func attributesOf(z *html.Tokenizer, more bool) attributes {
	var a attributes
	for more {
		var name, value []byte
		name, value, more = z.TagAttr()
		switch string(name) {
		case "src":
			if address := strings.TrimSpace(string(value)); !strings.HasPrefix(strings.ToLower(address), "data:") {
				a.source = words.Part(address, maxSource)
			}
		case "colspan":
			a.columns, _ = strconv.Atoi(strings.TrimSpace(string(value)))
		case "rowspan":
			a.rows, _ = strconv.Atoi(strings.TrimSpace(string(value)))
		}
	}
	return a
}

// media are the elements that a browser shows and a text cannot.
var media = map[atom.Atom]string{
	atom.Audio: "audio player", atom.Video: "video player", atom.Img: "image", atom.Svg: "drawing", atom.Canvas: "drawing",
	atom.Iframe: "embedded page",
}

func (w *writer) close(tag atom.Atom) {
	switch tag {
	case atom.Script, atom.Style, atom.Head, atom.Template, atom.Audio, atom.Video:
		if w.silent = max(0, w.silent-1); w.silent == 0 {
			w.player("")
		}
	case atom.Pre:
		w.pre = max(0, w.pre-1)
		w.line()
	case atom.Table:
		w.closeTable()
		w.line()
	case atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption, atom.Tr:
		w.closeRow()
		w.line()
	case atom.Td, atom.Th:
		w.closeCell()
	default:
		if isBlock(tag) {
			w.line()
		}
	}
}

func isBlock(tag atom.Atom) bool {
	switch tag {
	case atom.P, atom.Div, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Li,
		atom.Section, atom.Article, atom.Header, atom.Footer, atom.Blockquote, atom.Dl,
		atom.Dt, atom.Dd, atom.Hr, atom.Form, atom.Figure, atom.Details, atom.Summary:
		return true
	}
	return false
}
