package mcpserver

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlText reduces HTML to the text that a browser would show, with its lines, lists and tables. It is for outputs that
// have no plainer form.
func htmlText(source string) string {
	w := htmlWriter{}
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		switch z.Next() {
		case html.ErrorToken:
			w.player("")
			return strings.TrimSpace(w.b.String())
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, attributes := z.TagName()
			tag := atom.Lookup(name)
			w.open(tag)
			w.medium(tag, addressIn(z, attributes))
		case html.EndTagToken:
			name, _ := z.TagName()
			w.close(atom.Lookup(name))
		}
	}
}

// htmlWriter joins texts as a browser lays them out: runs of white space are one space, blocks are lines.
type htmlWriter struct {
	b        strings.Builder
	space    bool      // white space is due before the next word
	newlines int       // line ends at the end of b
	silent   int       // depth of elements that show nothing
	pre      int       // depth of elements that keep white space
	cell     bool      // the row has a cell already
	waiting  atom.Atom // a player whose address is not known yet; 0 for none
}

func (w *htmlWriter) text(s string) {
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
		if w.space && w.b.Len() > 0 && w.newlines == 0 {
			w.write(" ")
		}
		w.write(word)
		w.space = true
	}
	w.space = len(words) == 0 && w.space || strings.TrimRight(s, " \t\r\n") != s
}

func (w *htmlWriter) write(s string) {
	w.b.WriteString(s)
	w.newlines = len(s) - len(strings.TrimRight(s, "\n"))
}

// line begins a new line, unless the text is at the start of one.
func (w *htmlWriter) line() {
	w.space = false
	if w.b.Len() > 0 && w.newlines == 0 {
		w.write("\n")
	}
}

func (w *htmlWriter) open(tag atom.Atom) {
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
		w.newlines = 1 // no space before the item's text
	case atom.Tr:
		w.line()
		w.cell = false
	case atom.Td, atom.Th:
		w.space = false
		if w.cell {
			w.write(" | ")
			w.newlines = 1
		}
		w.cell = true
	default:
		if isBlock(tag) {
			w.line()
		}
	}
}

// medium stands for what cannot be shown, with where it is. What is inside of a player is for browsers that have none, but for its
// sources, the first of which is where it is.
func (w *htmlWriter) medium(tag atom.Atom, source string) {
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
func (w *htmlWriter) player(source string) {
	if w.waiting == 0 {
		return
	}
	tag, silent := w.waiting, w.silent
	w.waiting, w.silent = 0, 0
	w.name(tag, source)
	w.silent = silent
}

func (w *htmlWriter) name(tag atom.Atom, source string) {
	if source != "" {
		source = ": " + source
	}
	w.text(" [" + media[tag] + source + "] ")
}

func isPlayer(tag atom.Atom) bool { return tag == atom.Audio || tag == atom.Video }

// maxSource is the longest address that is told, in characters.
const maxSource = 200

// addressIn is the address in the attributes of the element that a tokenizer has just read; empty for none, and for content that stands
// for itself (data:).
func addressIn(z *html.Tokenizer, more bool) string {
	for more {
		var name, value []byte
		if name, value, more = z.TagAttr(); string(name) != "src" {
			continue
		}
		if address := strings.TrimSpace(string(value)); !strings.HasPrefix(strings.ToLower(address), "data:") {
			return cutMiddle(address, maxSource)
		}
		return ""
	}
	return ""
}

// media are the elements that a browser shows and a text cannot.
var media = map[atom.Atom]string{
	atom.Audio: "audio player", atom.Video: "video player", atom.Img: "image", atom.Svg: "drawing", atom.Canvas: "drawing",
	atom.Iframe: "embedded page",
}

func (w *htmlWriter) close(tag atom.Atom) {
	switch tag {
	case atom.Script, atom.Style, atom.Head, atom.Template, atom.Audio, atom.Video:
		if w.silent = max(0, w.silent-1); w.silent == 0 {
			w.player("")
		}
	case atom.Pre:
		w.pre = max(0, w.pre-1)
		w.line()
	default:
		if isBlock(tag) {
			w.line()
		}
	}
}

func isBlock(tag atom.Atom) bool {
	switch tag {
	case atom.P, atom.Div, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Li, atom.Table,
		atom.Tr, atom.Thead, atom.Tbody, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Blockquote, atom.Dl,
		atom.Dt, atom.Dd, atom.Hr, atom.Form, atom.Figure, atom.Details, atom.Summary:
		return true
	}
	return false
}
