package mcpserver

import (
	"strings"

	"cellblock/kernels"
	"cellblock/mcpserver/terminal"
)

// OutputMeta is the key in a progress notification's _meta under which clients of ours find the text that the cell has
// printed since the notification before: whole lines of stdout, together a beginning of what the result will hold unless the
// cell clears its output.
const OutputMeta = "cellblock/output"

// maxLive is the most text that one notification carries under OutputMeta.
const maxLive = 64 << 10

// liveLines collects whole lines of stdout. What the result will show otherwise (redrawn lines, text that will be cut)
// ends it: from there on the result alone tells.
type liveLines struct {
	pending strings.Builder
	sent    int
	ended   bool
}

func (l *liveLines) add(out kernels.Output) {
	if out.Kind == kernels.OutputClear || l.pending.Len()+len(out.Text) > maxLive {
		l.ended = true
	}
	if !l.ended && out.Kind == kernels.OutputStream && out.Stream == "stdout" {
		l.pending.WriteString(out.Text)
	}
}

// take returns the lines that have been completed since it was last called.
func (l *liveLines) take() string {
	text := l.pending.String()
	end := strings.LastIndexByte(text, '\n') + 1
	lines := text[:end]
	if l.sent+end > defaultBudget.chars/4 || terminal.Plain(lines) != lines {
		l.ended = true
	}
	if l.ended || end == 0 {
		return ""
	}
	l.sent += end
	l.pending.Reset()
	l.pending.WriteString(text[end:])
	return lines
}
