package mcpserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/words"
	"cellblock/sessions"
	"cellblock/sessions/files"
)

// maxFiles is how many files a list names.
const maxFiles = 200

// fileEntry is one thing of a workspace in structured results.
type fileEntry struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Modified string `json:"modified"`
	Target   string `json:"target,omitempty"`
}

var filesSchema = listSchema("files", "path", "type")

func pathArgument() mcp.ToolOption {
	return mcp.WithString("path", mcp.Required(), mcp.Description("In /workspace"))
}

func (s *service) listFilesTool() toolSpec {
	return toolSpec{
		name: "list_files", title: "List files",
		description: "List a session's files, in all folders.",
		input: []mcp.ToolOption{
			sessionArgument(),
			mcp.WithString("path", mcp.Description("A folder")),
			mcp.WithString("glob", mcp.Description("*.csv, data/**/*.py")),
		},
		output: filesSchema, readOnly: true, idempotent: true, handle: s.listFiles,
	}
}

func (s *service) listFiles(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "path", "glob")
	id, q := a.required("session_id"), files.Query{Path: a.text("path"), Glob: a.text("glob"), Most: maxFiles}
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	l, err := s.Sessions.ListFiles(ctx, owner, id, q)
	if err != nil {
		return toolError(err), nil
	}
	entries, lines := []fileEntry{}, []string{}
	for _, e := range l.Entries {
		entries = append(entries, fileEntryOf(e))
		lines = append(lines, fileLine(e))
	}
	lines = append(lines, "["+totals(l)+"]")
	return mcp.NewToolResultStructured(map[string]any{
		"files": entries, "total_files": l.Files, "total_folders": l.Folders, "total_bytes": l.Bytes, "partial": l.Partial,
	}, strings.Join(lines, "\n")), nil
}

func fileEntryOf(e files.Entry) fileEntry {
	return fileEntry{
		Path: e.Path, Type: string(e.Kind), Size: e.Size, Modified: e.Modified.UTC().Format(time.RFC3339), Target: e.Target,
	}
}

// fileLine is an entry on one line: "data/a.csv · 3.1 MiB · 2026-11-20 19:16:38".
func fileLine(e files.Entry) string {
	name, what := words.Name(e.Path), words.Bytes(e.Size)
	switch e.Kind {
	case files.Dir:
		name, what = name+"/", "folder"
	case files.Link:
		if what = "link to " + words.Name(e.Target); e.Outside {
			what += ", outside of the workspace and not followed"
		}
	case files.Special:
		what = "pipe, socket or device: not readable"
	}
	return name + " · " + what + " · " + e.Modified.UTC().Format(time.DateTime)
}

func totals(l files.Listing) string {
	text := words.Count(int64(l.Files), "file") + ", " + words.Bytes(l.Bytes)
	if l.Folders > 0 {
		text += ", " + words.Count(int64(l.Folders), "folder")
	}
	if more := l.Files + l.Folders - len(l.Entries); more > 0 {
		text += fmt.Sprintf("; %s of them not named: narrow it by path or glob", words.Thousands(int64(more)))
	}
	if l.Partial {
		text += "; there is more, or something that cannot be looked at"
	}
	return text
}

func (s *service) writeFileTool() toolSpec {
	return toolSpec{
		name: "write_file", title: "Write a file",
		description: "Write a session's file, also before its first cell. Replaces; makes folders.",
		input: []mcp.ToolOption{
			mcp.WithString("session_id", mcp.Required(), mcp.Description("May be a new name")), pathArgument(),
			mcp.WithString("content", mcp.Required(), mcp.Description("All, or a part")),
			mcp.WithString("encoding", mcp.Enum("text", "base64"), mcp.Description("Of content")),
			mcp.WithString("upload", mcp.Description("For parts: any word; empty content ends it")),
			mcp.WithInteger("offset", mcp.Description("Of the part, in bytes")),
		},
		destructive: true, handle: s.writeFile,
	}
}

func (s *service) writeFile(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "path", "content", "encoding", "upload", "offset")
	w := fileWrite{id: a.required("session_id"), path: a.required("path"), content: a.content(), upload: a.text("upload"), offset: a.offset()}
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	if w.upload != "" && len(w.content) > 0 {
		size, err := s.Sessions.AddToFile(ctx, owner, w.id, w.path, w.upload, w.offset, w.content)
		if err != nil {
			return toolError(err), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s of %s so far; go on at offset=%d. It appears when upload=%q ends there with empty content.",
			words.Bytes(size), words.Name(w.path), size, w.upload)), nil
	}
	e, created, err := s.put(ctx, owner, w)
	if err != nil {
		return toolError(err), nil
	}
	did := "Replaced"
	if created {
		did = "Wrote"
	}
	return mcp.NewToolResultText(fmt.Sprintf("%s %s in session %s, %s.", did, words.Name(e.Path), w.id, words.Bytes(e.Size))), nil
}

// fileWrite is what write_file is asked for. Offset is where content begins in the file, of which an upload is a part.
type fileWrite struct {
	id, path, upload string
	content          []byte
	offset           int64
}

// put puts a file in its place: what has come as an upload, if one is named.
func (s *service) put(ctx context.Context, o sessions.Owner, w fileWrite) (files.Entry, bool, error) {
	if w.upload != "" {
		return s.Sessions.FinishFile(ctx, o, w.id, w.path, w.upload, w.offset)
	}
	return s.Sessions.WriteFile(ctx, o, w.id, w.path, w.content)
}

// offset returns where a part of an upload begins. Without it nobody could tell whether a part is lost or has come twice.
func (a *arguments) offset() int64 {
	offset := a.index("offset", 0, 0)
	_, given := a.value("offset")
	switch upload := a.text("upload") != ""; {
	case upload && !given:
		a.fail("offset: say where this part of the upload begins in the file, in bytes: 0 for the first, the size of all for the empty one that ends it")
	case offset > 0 && !upload:
		a.fail("offset: goes with upload, for a file that comes in parts")
	}
	return int64(offset)
}

// content returns what is to be written.
func (a *arguments) content() []byte {
	text := a.required("content")
	switch encoding := a.text("encoding"); encoding {
	case "", "text":
		return []byte(text)
	case "base64":
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			a.fail("content: is not base64 (%v); for text leave encoding out, else encode the bytes with the standard alphabet, padded with =", err)
		}
		return raw
	default:
		a.fail("encoding: must be text or base64, got %s", clean(encoding))
		return nil
	}
}

func (s *service) deleteFileTool() toolSpec {
	return toolSpec{
		name: "delete_file", title: "Delete a file",
		description: "Delete a session's file or folder.",
		input: []mcp.ToolOption{
			sessionArgument(), pathArgument(),
			mcp.WithBoolean("recursive", mcp.Description("Also a full folder")),
		},
		destructive: true, handle: s.deleteFile,
	}
}

func (s *service) deleteFile(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "path", "recursive")
	id, path, recursive := a.required("session_id"), a.required("path"), a.flag("recursive")
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	e, err := s.Sessions.DeleteFile(ctx, owner, id, path, recursive)
	if err != nil {
		return toolError(err), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Deleted the %s %s of session %s.", e.Kind, words.Name(e.Path), id)), nil
}

// fileURI is the address of a workspace's file.
func fileURI(session, path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return fmt.Sprintf("%s/%s/files/%s", uriPrefix, session, strings.Join(parts, "/"))
}

// filesLine names the files that a cell wrote or deleted, on one line: "Files: plot.png (new, 12 KiB), data.csv (changed, 3.1 MiB),
// old.csv (deleted)".
func filesLine(r sessions.Result) string {
	if len(r.Files) == 0 {
		return ""
	}
	var named []string
	for _, c := range r.Files {
		how := "changed, " + words.Bytes(c.Size)
		switch {
		case c.Deleted:
			how = "deleted"
		case c.New:
			how = "new, " + words.Bytes(c.Size)
		}
		named = append(named, fmt.Sprintf("%s (%s)", words.Part(words.Name(c.Path), maxInLine), how))
	}
	line := "Files: " + strings.Join(named, ", ")
	if r.MoreFiles > 0 {
		line += fmt.Sprintf(" and %s more", words.Thousands(int64(r.MoreFiles)))
	}
	return line
}
