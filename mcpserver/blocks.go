package mcpserver

import (
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// toBlocks writes pieces as blocks, one each; of very many, all texts between two images are one. A line that says what is
// missing stands in the block before it, and the text goes on behind it there. Where something was left out that can be read
// elsewhere, a link leads there.
func toBlocks(pieces []piece, at place) []mcp.Content {
	blocks, linked := writeBlocks(pieces, at)
	if len(blocks) > maxBlocks {
		for i := range pieces {
			pieces[i].oneOfMany = true
		}
		blocks, linked = writeBlocks(pieces, at)
	}
	if linked {
		blocks = append(blocks, at.link())
	}
	return blocks
}

func writeBlocks(pieces []piece, at place) (blocks []mcp.Content, linked bool) {
	var texts blockTexts
	for _, p := range pieces {
		switch {
		case p.image != nil:
			texts.end()
			texts.blocks = append(texts.blocks, *p.image)
		case !p.missing.none():
			texts.addNote(p.missing.text(at.readOn(p.readable, texts.chars)), p.missing)
			linked = linked || p.readable && at.links
		case p.folded:
			texts.addNote(p.text, p.again)
		case p.text != "":
			texts.add(p)
		}
	}
	texts.end()
	return texts.blocks, linked
}

// blockTexts builds text blocks.
type blockTexts struct {
	blocks   []mcp.Content
	text     strings.Builder // the block that is being written; empty for none
	last     piece           // the last in it
	afterGap bool
	chars    int64 // written so far, in lines that are joined, without marks that the whole text has not
}

func (t *blockTexts) add(p piece) {
	switch {
	case t.text.Len() > 0 && t.afterGap && p.stderr == t.last.stderr && p.stdout == t.last.stdout:
		t.write(p.text)
	case t.text.Len() > 0 && p.oneOfMany && t.last.oneOfMany:
		t.addTurn(p)
	default:
		t.end()
		t.write(markStderr(p))
	}
	t.last, t.afterGap = p, false
}

// addTurn writes one of many texts behind another. A mark at a line's begin is that line's; one on a line of its own lasts
// until the next, so that what is not stderr's has one behind it.
func (t *blockTexts) addTurn(p piece) {
	if p.stderr || !t.last.stderr || !strings.Contains(t.last.text, "\n") {
		t.write(markStderr(p))
		return
	}
	before, name := t.chars, "output"
	if p.stdout {
		name = "stdout"
	}
	t.write(mark(name, p.text))
	t.chars = before + 1 + int64(utf8.RuneCountInString(p.text))
}

// addNote writes what stands for text that is not there, if anything does.
func (t *blockTexts) addNote(note string, instead left) {
	before := t.chars
	if note != "" {
		t.write(note)
	}
	t.chars, t.afterGap = before+instead.chars-instead.lost, true
}

// write writes text on lines of its own.
func (t *blockTexts) write(text string) {
	if t.chars > 0 {
		t.chars++ // the line end before it
	}
	t.chars += int64(utf8.RuneCountInString(text))
	if t.text.Len() > 0 {
		t.text.WriteByte('\n')
	}
	t.text.WriteString(text)
}

// end ends the block that is being written.
func (t *blockTexts) end() {
	if t.text.Len() > 0 {
		t.blocks = append(t.blocks, mcp.NewTextContent(t.text.String()))
	}
	t.text.Reset()
	t.last, t.afterGap = piece{}, false
}

// markStderr is a piece's text, marked if it is stderr's.
func markStderr(p piece) string {
	if p.stderr {
		return mark("stderr", p.text)
	}
	return p.text
}

// mark says which stream a text is from.
func mark(stream, text string) string {
	if strings.Contains(text, "\n") {
		return "[" + stream + "]\n" + text
	}
	return "[" + stream + "] " + text
}
