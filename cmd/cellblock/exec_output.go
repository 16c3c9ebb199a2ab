package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// liveOutput prints text of progress notifications as it comes, and remembers its lines.
type liveOutput struct {
	mu      sync.Mutex
	w       io.Writer
	printed strings.Builder
}

func (l *liveOutput) notification(n mcp.JSONRPCNotification) {
	if n.Method != "notifications/progress" || n.Params.Meta == nil {
		return
	}
	if text, ok := n.Params.Meta[mcpserver.OutputMeta].(string); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.printed.WriteString(text)
		_, _ = io.WriteString(l.w, text)
	}
}

// What a result marks the text of a stream with, where there are two: a line that it begins, or all up to the next mark where it
// stands alone.
const stderrMark, stdoutMark = "[stderr]", "[stdout]"

// rest prints the lines of a result's block that have not been printed live. Those that have stand in it in the same order,
// among others: results, errors, remarks about what was left out. What came of standard error was never printed live.
func (l *liveOutput) rest(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := strings.Split(l.printed.String(), "\n")
	if last := len(live) - 1; live[last] == "" {
		live = live[:last]
	} else {
		fmt.Fprintln(l.w)
	}
	marked, gap := false, false
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		rest, printed := after(live, line, gap)
		if strings.HasPrefix(line, stderrMark) && !printed { // a cell may print the mark itself
			marked = line == stderrMark
			fmt.Fprintln(l.w, line)
			continue
		}
		if said, ok := strings.CutPrefix(line, stdoutMark); ok && marked && (said == "" || said[0] == ' ') {
			if marked = false; said == "" {
				continue
			}
			line = said[1:]
			rest, printed = after(live, line, gap)
		}
		if printed && !marked {
			live, gap = rest, false
			continue
		}
		if strings.HasPrefix(line, "… ") && strings.Contains(line, " left out here") {
			gap, line = true, ownCalls(line)
		}
		fmt.Fprintln(l.w, ownLine(line))
	}
	l.printed.Reset()
	l.printed.WriteString(strings.Join(live, "\n"))
	if len(live) > 0 {
		l.printed.WriteString("\n")
	}
}

// after returns the lines behind line, if that is the next of them or, behind a gap, any of them. Blanks at the end of a
// block are not in a result.
func after(lines []string, line string, gap bool) (rest []string, ok bool) {
	line = trimBlanks(line)
	for i, l := range lines {
		if l = trimBlanks(l); l == line {
			return lines[i+1:], true
		} else if l != "" && !gap {
			break
		}
	}
	return lines, false
}

func trimBlanks(s string) string { return strings.TrimRight(s, " \t") }

// print writes the result's blocks: text to stdout, images to files, what the server says before and after to stderr.
func (o execOptions) print(ctx context.Context, c *client.Client, result *mcp.CallToolResult, live *liveOutput, stderr io.Writer) (failed error) {
	images := 0
	for i, block := range result.Content {
		switch b := block.(type) {
		case mcp.TextContent:
			text := strings.TrimRight(b.Text, "\n")
			switch {
			case i == len(result.Content)-1:
				fmt.Fprintln(stderr, ownClosing(text))
			case i == 0 && aboutCell(result).Noted:
				fmt.Fprintln(stderr, ownNote(text))
			default:
				live.rest(ownNote(text))
			}
		case mcp.ImageContent:
			images++
			if o.images != "" {
				b = original(ctx, c, b)
			}
			path, err := o.saveImage(b, images)
			if err != nil {
				failed = cmp.Or(failed, err) // after the status line, which says what became of the cell
				continue
			}
			fmt.Fprintln(stderr, path)
		}
	}
	return failed
}

// original returns the image that a result shows smaller than it is; what the result shows, where there is no other.
func original(ctx context.Context, c *client.Client, shown mcp.ImageContent) mcp.ImageContent {
	if shown.Meta == nil {
		return shown
	}
	uri, _ := shown.Meta.AdditionalFields[mcpserver.OriginalMeta].(string)
	var ask mcp.ReadResourceRequest
	ask.Params.URI = uri
	got, err := c.ReadResource(ctx, ask)
	if uri == "" || err != nil {
		return shown
	}
	for _, form := range got.Contents {
		if blob, ok := form.(mcp.BlobResourceContents); ok && strings.HasPrefix(blob.MIMEType, "image/") {
			return mcp.NewImageContent(blob.Blob, blob.MIMEType)
		}
	}
	return shown
}

func (o execOptions) saveImage(b mcp.ImageContent, n int) (string, error) {
	if o.images == "" {
		return "[image " + b.MIMEType + "; save images with --images DIR]", nil
	}
	raw, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil {
		return "", fault.New(fault.Internal, "the server sent a broken image: %w", err)
	}
	if err := os.MkdirAll(o.images, 0o755); err != nil {
		return "", fault.New(fault.Unavailable, "the image cannot be saved: %w", err)
	}
	extension := ".png"
	if known, err := mime.ExtensionsByType(b.MIMEType); err == nil && len(known) > 0 && b.MIMEType != "image/png" {
		extension = known[0]
	}
	for {
		path := filepath.Join(o.images, fmt.Sprintf("image-%d%s", n, extension))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			n++
			continue
		}
		if err != nil {
			return "", fault.New(fault.Unavailable, "the image cannot be saved: %w", err)
		}
		_, err = f.Write(raw)
		return path, errors.Join(err, f.Close())
	}
}
