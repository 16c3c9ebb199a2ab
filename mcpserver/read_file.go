package mcpserver

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/internal/filetype"
	"cellblock/internal/words"
	"cellblock/mcpserver/picture"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions/files"
)

const (
	// maxRead is how much of a text file is read to find lines and to count them, in bytes.
	maxRead = 64 << 20
	// maxImageFile is the largest image file that is looked at, in bytes.
	maxImageFile = 32 << 20
)

func (s *service) readFileTool() toolSpec {
	return toolSpec{
		name: "read_file", title: "Read a file",
		description: "Read a text file by lines, or see an image. Others: let code read them.",
		input: []mcp.ToolOption{
			sessionArgument(), pathArgument(),
			mcp.WithInteger("offset", mcp.Min(1.0), mcp.Description("First line")),
			mcp.WithInteger("limit", mcp.Min(1.0), mcp.Description("Most lines")),
		},
		readOnly: true, idempotent: true, handle: s.readFile,
	}
}

func (s *service) readFile(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "path", "offset", "limit")
	id, name, offset, limit := a.required("session_id"), a.required("path"), a.index("offset", 1, 1), a.index("limit", 1, 1<<30)
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	f, e, err := s.Sessions.OpenFile(ctx, owner, id, name)
	if err != nil {
		return toolError(err), nil
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, filetype.Sniffed)
	head, err := in.Peek(filetype.Sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return toolError(fmt.Errorf("reading %s: %w", words.Name(e.Path), files.Pathless(err))), nil
	}
	kind := filetype.Of(e.Path, head)
	var content []mcp.Content
	what := "neither text nor an image that can be shown; let code in the session read it"
	switch encoding := filetype.Encoding(head); {
	case slices.Contains(filetype.Images, kind):
		if content, err = s.imageFile(in, id, kind, e); err != nil {
			what = "it cannot be shown, as " + clean(err.Error()) + "; let code in the session read it, and write a smaller one to be seen"
		}
	case filetype.LooksLikeText(head):
		content = s.textFile(in, offset, limit, e)
	case encoding != "":
		what = "not UTF-8; if it is text, it is " + encoding + " or alike: let code in the session read it with encoding=\"" + encoding + "\""
	}
	if content == nil {
		content = otherFile(ctx, id, kind, what, e)
	}
	return &mcp.CallToolResult{Content: content}, nil
}

// imageFile shows an image.
func (s *service) imageFile(in io.Reader, id, kind string, e files.Entry) ([]mcp.Content, error) {
	if e.Size > maxImageFile {
		return nil, fmt.Errorf("it is larger than %s", words.Bytes(maxImageFile))
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxImageFile))
	if err != nil {
		return nil, files.Pathless(err)
	}
	fit, err := picture.Fit(kind, base64.StdEncoding.EncodeToString(raw), s.budget.room(s.budget.images))
	if errors.Is(err, picture.ErrNoRoom) {
		return nil, errors.New("it is too large for a result")
	} else if err != nil {
		return nil, err
	}
	how := fmt.Sprintf("%s · %d×%d pixels · %s", words.Name(e.Path), fit.Width, fit.Height, words.Bytes(e.Size))
	block := mcp.NewImageContent(fit.Data, fit.MIME)
	if fit.Smaller {
		how += "; scaled down, the original is " + fileURI(id, e.Path)
		block.Meta = &mcp.Meta{AdditionalFields: map[string]any{OriginalMeta: fileURI(id, e.Path)}}
	}
	if fit.Pictures > 1 {
		how += fmt.Sprintf("; the first of %d pictures of an animation", fit.Pictures)
	}
	return []mcp.Content{block, mcp.NewTextContent("[" + how + "]")}, nil
}

// textFile is a part of a text with where it is in the whole.
func (s *service) textFile(in io.Reader, offset, limit int, e files.Entry) []mcp.Content {
	p := readLines(io.LimitReader(in, maxRead), offset, limit, s.budget.chars)
	count := words.Thousands(int64(p.total))
	if e.Size > maxRead {
		count = "more than " + count
	}
	how := fmt.Sprintf("lines %s to %s of %s · %s", words.Thousands(int64(p.from)), words.Thousands(int64(p.to)), count, words.Bytes(e.Size))
	switch {
	case p.total == 0:
		how = "empty"
	case p.to < p.from:
		how = fmt.Sprintf("%s · line %s is behind the end", words.Count(int64(p.total), "line"), words.Thousands(int64(offset)))
	case p.cut:
		how += "; the line goes on, let code read it"
	case p.to < p.total || e.Size > maxRead:
		how += fmt.Sprintf("; read on with offset=%d", p.to+1)
	}
	var content []mcp.Content
	if p.text != "" {
		content = append(content, mcp.NewTextContent(p.text))
	}
	return append(content, mcp.NewTextContent("["+words.Name(e.Path)+" · "+how+"]"))
}

// otherFile says what a file is that is neither read nor seen here, and where it is.
func otherFile(ctx context.Context, id, kind, what string, e files.Entry) []mcp.Content {
	content := []mcp.Content{mcp.NewTextContent(fmt.Sprintf("[%s · %s · %s: %s]", words.Name(e.Path), kind, words.Bytes(e.Size), what))}
	if knowsLinks(server.RequestProtocolVersion(ctx)) {
		content = append(content, mcp.NewResourceLink(fileURI(id, e.Path), words.Name(path.Base(e.Path)), "The file as it is", kind))
	}
	return content
}

// someLines are lines of a text.
type someLines struct {
	text     string
	from, to int // to is less than from when there are none
	total    int
	cut      bool // the last line goes on
}

// readLines reads lines from a place on, at most so many lines and characters, and counts all of them.
func readLines(r io.Reader, from, most, chars int) someLines {
	p := someLines{from: from, to: from - 1}
	in, room, full := bufio.NewReader(r), chars, false
	var text strings.Builder
	for {
		line, err := in.ReadSlice('\n')
		begins := p.total + 1
		if wanted := begins >= from && begins-from < most && !full; wanted && len(line) > 0 {
			part := visible(string(line))
			if n := utf8.RuneCountInString(part); n > room {
				full = true
				if begins > from || text.Len() > 0 && p.to < begins {
					part = "" // the next call begins with it
				} else {
					part, p.cut, p.to = part[:runeOffset(part, room)], true, begins
				}
			} else {
				room, p.to = room-n, begins
			}
			text.WriteString(part)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 || err == nil {
			p.total++
		}
		if err != nil {
			break
		}
	}
	p.text = text.String()
	return p
}

// visible is text of a file with its control characters made visible, so that a terminal does not obey them.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return r
		case r < ' ':
			return '\u2400' + r
		case terminal.IsControl(r):
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
