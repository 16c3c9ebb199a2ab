package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/filetype"
	"cellblock/internal/words"
	"cellblock/mcpserver/transport"
	"cellblock/sessions/files"
)

const (
	// maxListedSessions is how many sessions' files are listed as resources, those used last.
	maxListedSessions = 10
	// maxListedFiles is how many files are.
	maxListedFiles = 100
	// filesPath is what tells the addresses of files from those of outputs.
	filesPath = "/files/"
	// maxFilePart is how much of a file is sent to who asks for it from an offset on.
	maxFilePart = 8 << 20
)

// FileMeta is the key in the _meta of a part of a file under which programs find where it begins ("offset"), and the size of the
// whole ("size").
const FileMeta = "cellblock/file"

// addFileResources gives srv the files of workspaces as resources.
func (s *service) addFileResources(srv *server.MCPServer, hooks *server.Hooks) {
	hooks.AddAfterListResources(s.listFileResources)
	srv.AddResourceTemplate(mcp.NewResourceTemplate(uriPrefix+"/{session_id}"+filesPath+"{+path}{?offset}", "workspace file",
		mcp.WithTemplateDescription("A file of a session's workspace as it is, up to "+words.Bytes(maxForms)+"; of a larger one, "+
			words.Bytes(maxFilePart)+" from an offset on")), s.fileResource)
}

// fileResource reads a file as a resource.
func (s *service) fileResource(ctx context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	contents, err := s.readFileResource(ctx, r.Params.URI)
	if err != nil {
		transport.Fail(ctx, err)
		return nil, shown{err}
	}
	return []mcp.ResourceContents{contents}, nil
}

func (s *service) readFileResource(ctx context.Context, uri string) (mcp.ResourceContents, error) {
	if !s.Allowed(ctx, ScopeFilesRead) {
		return nil, auth.NeedsScope("reading this resource", ScopeFilesRead)
	}
	a, err := parseFileURI(uri)
	if err != nil {
		return nil, err
	}
	owner, err := s.Owner(ctx)
	if err != nil {
		return nil, err
	}
	f, e, err := s.Sessions.OpenFile(ctx, owner, a.session, a.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if a.part {
		return filePart(f, e, a)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxForms+1))
	if err != nil {
		return nil, fault.New(fault.Unavailable, "%q cannot be read: %w", e.Path, files.Pathless(err))
	}
	if len(content) > maxForms {
		return nil, fault.New(fault.Invalid, "%q has %s, more than the %s that are sent in one piece", e.Path, words.Bytes(e.Size), words.Bytes(maxForms)).
			WithHint("read it by parts: %s?offset=0; of a text, read_file shows lines", uri)
	}
	kind := filetype.Of(e.Path, content[:min(len(content), filetype.Sniffed)])
	if filetype.IsText(content) {
		return mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: string(content)}, nil
	}
	return mcp.BlobResourceContents{URI: uri, MIMEType: kind, Blob: base64.StdEncoding.EncodeToString(content)}, nil
}

// filePart is a part of a file, whatever is in it.
func filePart(f *os.File, e files.Entry, a fileAddress) (mcp.ResourceContents, error) {
	var content bytes.Buffer
	content.Grow(int(max(0, min(maxFilePart, e.Size-a.offset))))
	if _, err := content.ReadFrom(io.NewSectionReader(f, a.offset, maxFilePart)); err != nil {
		return nil, fault.New(fault.Unavailable, "%q cannot be read: %w", e.Path, files.Pathless(err))
	}
	return mcp.BlobResourceContents{
		URI: a.uri, MIMEType: "application/octet-stream", Blob: base64.StdEncoding.EncodeToString(content.Bytes()),
		Meta: map[string]any{FileMeta: map[string]any{"offset": a.offset, "size": e.Size}},
	}, nil
}

// fileAddress is that of a file, or of a part of it from an offset on.
type fileAddress struct {
	uri, session, path string
	part               bool
	offset             int64
}

// parseFileURI reads the address of a file.
func parseFileURI(uri string) (fileAddress, error) {
	a := fileAddress{uri: uri}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "cellblock" || u.Host != "sessions" || u.User != nil || u.Fragment != "" {
		return a, notAnAddress(uri)
	}
	var offset string
	if offset, a.part = strings.CutPrefix(u.RawQuery, "offset="); a.part {
		a.offset, err = strconv.ParseInt(offset, 10, 64)
	}
	var ok bool
	a.session, a.path, ok = strings.Cut(strings.TrimPrefix(u.Path, "/"), filesPath)
	if err != nil || a.offset < 0 || !a.part && u.RawQuery != "" || !ok || a.session == "" || a.path == "" {
		return a, notAnAddress(uri)
	}
	return a, nil
}

// listFileResources lists files of the sessions that were used last.
func (s *service) listFileResources(ctx context.Context, _ any, r *mcp.ListResourcesRequest, result *mcp.ListResourcesResult) {
	if !s.Allowed(ctx, ScopeFilesRead) || r.Params.Cursor != "" { // they are on the first page
		return
	}
	owner, err := s.Owner(ctx)
	if err != nil {
		return
	}
	infos, err := s.Sessions.List(ctx, owner)
	if err != nil {
		s.Logger.Warn("sessions could not be listed as resources", slog.Any("error", err))
		return
	}
	room := maxListedFiles
	for _, info := range infos[:min(len(infos), maxListedSessions)] {
		l, err := s.Sessions.PeekFiles(ctx, owner, info.ID, files.Query{Most: room})
		if err != nil {
			continue // it has just ended
		}
		for _, e := range l.Entries {
			if e.Kind == files.File && !strings.HasPrefix("/"+e.Path, "/.") && !strings.Contains(e.Path, "/.") {
				room--
				result.Resources = append(result.Resources, mcp.NewResource(fileURI(info.ID, e.Path),
					fmt.Sprintf("File %s of session %s", words.Name(e.Path), info.ID), mcp.WithMIMEType(filetype.Named(e.Path))))
			}
		}
	}
}
