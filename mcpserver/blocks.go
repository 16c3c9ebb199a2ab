package mcpserver

import (
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// toBlocks writes pieces as blocks, one each. A line that says what is missing stands in the block before it, and the
// text goes on behind it there. Where something was left out that can be read elsewhere, a link leads there.
func toBlocks(pieces []piece, at place) []mcp.Content {
	var texts blockTexts
	linked := false
	for _, p := range pieces {
		switch {
		case p.image != nil:
			texts.end()
			texts.blocks = append(texts.blocks, *p.image)
		case !p.missing.none():
			texts.addNote(p.missing.text(at.readOn(p.readable, texts.chars)), p.missing)
			linked = linked || p.readable && at.links
		case !p.again.none():
			texts.addNote(p.text, p.again)
		case p.text != "":
			texts.add(p)
		}
	}
	texts.end()
	blocks := joinMany(texts.blocks)
	if linked {
		blocks = append(blocks, at.link())
	}
	return blocks
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
	case t.text.Len() > 0 && p.oneOfMany && t.last.oneOfMany:
		t.addTurn(p)
	case t.text.Len() > 0 && t.afterGap && p.stderr == t.last.stderr:
		t.write(p.text)
	default:
		t.end()
		t.write(markStderr(p))
	}
	t.last, t.afterGap = p, false
}

// addTurn writes one of many turns behind another. A mark at a line's begin is that line's; one on a line of its own lasts
// until the next, so that stdout has one behind it.
func (t *blockTexts) addTurn(p piece) {
	if p.stderr || !t.last.stderr || !strings.Contains(t.last.text, "\n") {
		t.write(markStderr(p))
		return
	}
	before := t.chars
	t.write(mark("stdout", p.text))
	t.chars = before + 1 + int64(utf8.RuneCountInString(p.text))
}

// addNote writes what stands for text that is not there.
func (t *blockTexts) addNote(note string, instead left) {
	before := t.chars
	t.write(note)
	t.chars, t.afterGap = before+instead.chars, true
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

// joinMany joins neighbouring texts when there are very many blocks.
func joinMany(blocks []mcp.Content) []mcp.Content {
	if len(blocks) <= maxBlocks {
		return blocks
	}
	var joined []mcp.Content
	for _, block := range blocks {
		text, isText := block.(mcp.TextContent)
		if before, ok := last(joined).(mcp.TextContent); ok && isText {
			joined[len(joined)-1] = mcp.NewTextContent(joinLines(before.Text, text.Text))
			continue
		}
		joined = append(joined, block)
	}
	return joined
}

func last(blocks []mcp.Content) mcp.Content {
	if len(blocks) == 0 {
		return nil
	}
	return blocks[len(blocks)-1]
}
