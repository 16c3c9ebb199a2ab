package mcpserver

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cellblock/internal/filetype"
	"cellblock/kernels"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

// page is a part of everything that a cell showed, as one text. Positions and lengths are in characters.
type page struct {
	text string
	// from is where it begins, next where the next page would.
	from, next int64
	// total is how long the whole text is so far, with so many lines.
	total, lines int64
}

func (p page) last() bool { return p.next >= p.total }

// readPage reads a part of what a cell has shown until now, at most size characters from an offset on. It holds no more of
// it than that.
func (s *service) readPage(e *sessions.Execution, offset, size int64) page {
	t := transcript{at: place{session: e.SessionID(), execution: e.Number(), shift: shiftOf(e.Number(), e.Info().Result)}, from: offset, to: offset + size}
	t.screen.Out = t.take
	for out := range e.SoFar(0) {
		t.add(out)
	}
	t.screen.Flush()
	return page{text: t.text.String(), from: min(offset, t.chars), next: min(offset+size, t.chars), total: t.chars, lines: t.lines}
}

// transcript writes down what a cell showed, in the order in which it came: nothing is cleared or replaced, unlike in a
// result. Of this it keeps the characters between from and to.
type transcript struct {
	at       place
	from, to int64
	screen   terminal.Screen
	stream   string // whose text goes on; "" for none
	chars    int64
	lines    int64
	open     bool // the last line has no end yet
	text     strings.Builder
}

func (t *transcript) add(out sessions.Numbered) {
	switch out.Kind {
	case kernels.OutputClear, kernels.OutputOther, kernels.OutputInput, kernels.OutputAnswer:
	case kernels.OutputStream:
		t.addText(out.Stream, out.Text)
	case kernels.OutputNotice:
		t.addLine(out.Notice.String())
	case kernels.OutputError:
		t.addLine(errorText(*out.Error, t.at.shift))
	default:
		t.addLine(t.bundle(out))
	}
}

func (t *transcript) addText(stream, text string) {
	if stream != t.stream {
		t.endLine()
		t.stream = stream
		if stream == "stderr" {
			t.take("[stderr] ")
		}
	}
	t.screen.Write(text)
}

// addLine adds what is no stream on lines of its own.
func (t *transcript) addLine(text string) {
	t.endLine()
	t.stream = ""
	t.take(text)
}

func (t *transcript) endLine() {
	t.screen.Flush()
	if t.open {
		t.take("\n")
	}
}

// bundle is a display as text; of an image, where it is.
func (t *transcript) bundle(out sessions.Numbered) string {
	if mime := firstOf(out.Data, filetype.Images...); mime != "" {
		return fmt.Sprintf("[%s: %s]", mime, t.at.one(out.Index))
	}
	return bundleText(out.Data, t.at.kept(out.Index))
}

// take counts text and keeps the part that is wanted.
func (t *transcript) take(text string) {
	if text == "" {
		return
	}
	n := int64(utf8.RuneCountInString(text))
	if first, last := max(t.from-t.chars, 0), min(t.to-t.chars, n); first < last {
		begin := runeOffset(text, int(first))
		t.text.WriteString(text[begin : begin+runeOffset(text[begin:], int(last-first))])
	}
	t.chars += n
	t.lines += int64(strings.Count(text, "\n"))
	t.open = !strings.HasSuffix(text, "\n")
}
