package render

import (
	"html/template"
	"regexp"
	"strings"
	"unicode/utf8"

	terminal "github.com/buildkite/terminal-to-html/v3"
	"github.com/microcosm-cc/bluemonday"
)

// The screen on which a stream is played: cursors go back up at most screenRows lines. Lines may be longer than screenColumns, and
// more lines than the scroll-back are kept by ourselves.
const (
	screenRows, screenColumns = 100, 160
	scrollBack                = 4 * screenRows
	maxLines                  = 50_000
)

// Operating system commands and the like set titles and links, and show images in some terminals. None of it belongs here.
var stringCommands = regexp.MustCompile("(?s)(\x1b[\\]_P^X]|[\u009d\u009f\u0090\u009e\u0098]).*?(\x07|\x1b\\\\|\u009c|\n|$)")

// coloured is what may be left of a terminal's text.
var coloured = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^term-[a-z0-9]{1,8}( term-[a-z0-9]{1,8})*$`)).OnElements("span")
	return p
}()

// Terminal is a stream's text as a terminal shows it in the end, line by line: carriage returns have overwritten what was there,
// colours are classes ("term-fg31"). Text that is to be hidden is not, as in Jupyter: a model reads it, and who watches sees what it reads.
// A line has no end of line.
func Terminal(text string) []template.HTML {
	text, more := clip(text, maxText)
	lines := terminalLines(text)
	if more != "" {
		lines = append(lines, template.HTML(template.HTMLEscapeString(more)))
	}
	return lines
}

func terminalLines(text string) (lines []template.HTML) {
	if text == "" {
		return nil
	}
	text = undirected(text)
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }) < 0 {
		return asLines(template.HTMLEscapeString(text)) // nothing to be played
	}
	defer func() {
		if recover() != nil { // nobody knows what a hostile text does to somebody else's parser
			lines = asLines(template.HTMLEscapeString(text))
		}
	}()
	return asLines(play(strings.Map(played, stringCommands.ReplaceAllString(text, ""))))
}

// played is a character as the screen gets it: of those that control something, only what moves its cursor or begins a sequence. A
// browser would draw the others, a bell as a telephone.
func played(r rune) rune {
	switch {
	case strings.ContainsRune("\b\t\n\r\x1b", r):
		return r
	case r == '\v' || r == '\f':
		return '\n'
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return -1
	}
	return r
}

// play shows a text on a screen and returns what stands there, and what has scrolled off.
func play(text string) string {
	screen, err := terminal.NewScreen(terminal.WithSize(screenColumns, screenRows), terminal.WithMaxSize(screenColumns, scrollBack))
	if err != nil {
		panic(err) // the sizes are constants
	}
	var out strings.Builder
	add := func(html string) {
		if out.Len()+len(html) <= maxHTML {
			out.WriteString(strings.ReplaceAll(html, "&nbsp;\n", "\n"))
		}
	}
	screen.ScrollOutFunc = add
	// Tabs are columns on the screen, where they would overwrite nothing.
	_, _ = screen.Write([]byte(inverse(basicColours(strings.ReplaceAll(text, "\t", "    "))))) // it never fails
	add(screen.AsHTML())
	return readable(coloured.Sanitize(out.String()))
}

// asLines splits HTML in which no element goes over the end of a line.
func asLines(text string) []template.HTML {
	var lines []template.HTML
	for line := range strings.Lines(text) {
		if len(lines) == maxLines {
			return append(lines, "… more lines are not shown …")
		}
		lines = append(lines, template.HTML(strings.TrimSuffix(line, "\n")))
	}
	return lines
}

// joined are lines as the inside of a <pre>.
func joined(lines []template.HTML) template.HTML {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(string(l))
	}
	return template.HTML(b.String())
}

// Shortened is a line of Terminal's as its first and its last characters, with a mark between them; the line itself where it is not
// longer than both.
func Shortened(line template.HTML, first, last int) template.HTML {
	text := string(line)
	if len(text) <= first+last {
		return line
	}
	_, _, total := walk(text, len(text))
	if total <= first+last {
		return line
	}
	head, open, _ := walk(text, first)
	tail, again, _ := walk(text, total-last)
	ends := ""
	if open != "" {
		ends = "</span>"
	}
	return template.HTML(text[:head] + ends + " … " + again + text[tail:])
}

// walk goes over so many characters of a line, or all that there are, and tells where it is, which element is open there and how many
// characters it has met. Elements do not stand in each other.
func walk(text string, most int) (at int, open string, met int) {
	for at < len(text) && met < most {
		one := piece(text[at:])
		at += len(one)
		switch {
		case one == "</span>":
			open = ""
		case one[0] == '<':
			open = one
		default:
			met++
		}
	}
	return at, open, met
}

// piece is the first tag, entity or character of some HTML.
func piece(text string) string {
	_, n := utf8.DecodeRuneInString(text)
	switch text[0] {
	case '<':
		n = strings.IndexByte(text, '>') + 1
	case '&':
		n = strings.IndexByte(text, ';') + 1
	}
	return text[:max(1, n)]
}
