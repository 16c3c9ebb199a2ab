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
			texts.blocks = append(texts.blocks, *p.image)
			texts.open = false
		case !p.missing.none():
			texts.addGap(p.missing.text(at.readOn(p.readable, texts.chars)))
			linked = linked || p.readable && at.links
		case p.text != "":
			texts.add(p.text, p.stderr)
		}
	}
	blocks := joinMany(texts.blocks)
	if linked {
		blocks = append(blocks, at.link())
	}
	return blocks
}

// blockTexts builds text blocks.
type blockTexts struct {
	blocks   []mcp.Content
	open     bool // the last block is a text
	stderr   bool // of the last text
	afterGap bool
	chars    int64 // written so far, in lines that are joined
}

func (t *blockTexts) add(text string, stderr bool) {
	goesOn := t.open && t.afterGap && stderr == t.stderr
	if stderr && !goesOn {
		text = markStderr(text)
	}
	t.write(text, goesOn)
	t.stderr, t.afterGap = stderr, false
}

func (t *blockTexts) addGap(note string) {
	t.write(note, t.open)
	t.afterGap = true
}

func (t *blockTexts) write(text string, goesOn bool) {
	if t.chars > 0 {
		t.chars++ // the line end before it
	}
	t.chars += int64(utf8.RuneCountInString(text))
	if goesOn {
		before := t.blocks[len(t.blocks)-1].(mcp.TextContent)
		t.blocks[len(t.blocks)-1] = mcp.NewTextContent(joinLines(before.Text, text))
		return
	}
	t.blocks = append(t.blocks, mcp.NewTextContent(text))
	t.open = true
}

// markStderr says which stream a text is from.
func markStderr(text string) string {
	if strings.Contains(text, "\n") {
		return "[stderr]\n" + text
	}
	return "[stderr] " + text
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
