package viewer

import (
	"html/template"
	"slices"
	"strings"

	"cellblock/internal/words"
	"cellblock/web/render"
)

const (
	// foldAbove is how many lines of a text are shown at most; of more, the first and the last.
	foldAbove, firstLines, lastLines = 40, 20, 10
	// maxChars is how many characters a text shows that is folded, about: a line of more than its share, and than leastLine, is shortened.
	maxChars, leastLine = 4000, 400
	// keepText is how much of a text is kept at its beginning while it is folded, and always at its end, in bytes.
	keepText = 64 << 10
	// maxShown bounds what "show all" brings of a text's beginning, in bytes.
	maxShown = 2 << 20
)

// foldedText is a text that grows, of which beginning and end are kept: much of the beginning where all is asked for.
type foldedText struct {
	all        bool
	head, tail strings.Builder
	lost       int64 // bytes between
	unread     bool  // there is more behind the end
}

func (t *foldedText) add(text string) {
	most := keepText
	if t.all {
		most = maxShown
	}
	if room := most - t.head.Len(); t.tail.Len() == 0 && t.lost == 0 && room > 0 {
		cut := len(text)
		if cut > room {
			cut = strings.LastIndexByte(text[:room], '\n') + 1 // lines stay whole
		}
		if cut == 0 && t.head.Len() == 0 { // but for one that is too long
			cut = len(strings.ToValidUTF8(text[:room], ""))
		}
		t.head.WriteString(text[:cut])
		if text = text[cut:]; text == "" {
			return
		}
	}
	t.tail.WriteString(text)
	if t.tail.Len() > 2*keepText {
		kept := t.tail.String()
		cut := len(kept) - keepText
		if end := strings.IndexByte(kept[cut:], '\n'); end >= 0 {
			cut += end + 1 // lines stay whole
		}
		t.lost += int64(cut)
		t.tail.Reset()
		t.tail.WriteString(strings.ToValidUTF8(kept[cut:], "\uFFFD"))
	}
}

// html is the text, folded if it is long: a button stands for what is not shown. What not even that brings is at an address.
func (t *foldedText) html(address string) template.HTML {
	switch {
	case t.all:
		return t.unfolded(address)
	case t.lost > 0:
		return fold(render.Terminal(t.head.String()), render.Terminal(t.tail.String()), "Show more: "+words.Bytes(t.lost+keepText)+" between")
	}
	lines := render.Terminal(t.head.String() + t.tail.String())
	if len(lines) > foldAbove {
		return fold(lines, lines, "Show all "+words.Count(int64(len(lines)), "line"))
	}
	if short := shortened(lines); !slices.Equal(short, lines) {
		return pre(short) + unfold("Show all "+words.Bytes(int64(t.head.Len()+t.tail.Len())))
	}
	return pre(lines)
}

// shortened are lines that are shown together, of which each has its share of characters.
func shortened(lines []template.HTML) (short []template.HTML) {
	share := max(leastLine, maxChars/max(1, len(lines)))
	for _, l := range lines {
		short = append(short, render.Shortened(l, share*3/4, share/4))
	}
	return short
}

// unfold is the button that brings all of a text.
func unfold(label string) template.HTML {
	return template.HTML(`<button type="button" class="unfold">` + label + `</button>`)
}

// unfolded is the text in a box of its own, which keeps the page as long as it is, and the button to fold it again.
func (t *foldedText) unfolded(address string) template.HTML {
	var shown template.HTML
	if t.lost == 0 {
		shown = pre(render.Terminal(t.head.String() + t.tail.String()))
	} else {
		shown = pre(render.Terminal(t.head.String())) + notShown(words.Bytes(t.lost)+" between", address) + pre(render.Terminal(t.tail.String()))
	}
	if t.unread {
		shown += notShown("more behind this", address)
	}
	return `<div class="unfolded" tabindex="0" role="group" aria-label="The text, unfolded">` + shown + `</div><button type="button" class="refold">Show less</button>`
}

// notShown says what is not shown, and where all text is, if that is anywhere.
func notShown(what, address string) template.HTML {
	if address == "" {
		return remark("… " + what + " not shown here …")
	}
	return template.HTML(`<p class="remark">… ` + template.HTMLEscapeString(what) + ` not shown here: <a href="` + template.HTMLEscapeString(address) +
		`" download>download all text of the cell</a> …</p>`)
}

// inNotebook says what of a cell is not shown, be it text or pictures, and where it is.
func (s *shown) inNotebook(what string) template.HTML {
	notebook := s.address("/s/" + s.session + "/notebook")
	if notebook == "" {
		return notShown(what, "")
	}
	return template.HTML(`<p class="remark">… ` + template.HTMLEscapeString(what) + ` not shown here: <a href="` + template.HTMLEscapeString(notebook) +
		`" download>download the notebook</a>, which has pictures too and says what it leaves out, or <a href="` + template.HTMLEscapeString(s.address(textAddress(s.session, s.number))) +
		`" download>all text of the cell</a> …</p>`)
}

// fold shows the first lines of one text and the last ones of another, and between them a button.
func fold(head, tail []template.HTML, label string) template.HTML {
	return pre(shortened(head[:min(len(head), firstLines)])) + unfold(label) + pre(shortened(tail[max(0, len(tail)-lastLines):]))
}

func pre(lines []template.HTML) template.HTML {
	var b strings.Builder
	b.WriteString(`<pre>`)
	for _, l := range lines {
		b.WriteString(string(l) + "\n")
	}
	b.WriteString(`</pre>`)
	return template.HTML(b.String())
}
