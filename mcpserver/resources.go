package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver/picture"
	"cellblock/mcpserver/terminal"
	"cellblock/mcpserver/transport"
	"cellblock/notebook"
	"cellblock/sessions"
)

const (
	// maxPage is the most characters that one reading of a resource may ask for.
	maxPage = 1_000_000
	// maxForms is the most that one output's forms may have together, in bytes, to be sent.
	maxForms = 32 << 20
)

// addResources gives srv the outputs of cells, and what there is of a whole session, as resources.
func (s *service) addResources(srv *server.MCPServer, hooks *server.Hooks) {
	hooks.AddAfterListResources(s.listResources)
	hooks.AddAfterListResourceTemplates(s.filterTemplates)
	srv.AddResourceTemplate(mcp.NewResourceTemplate(uriPrefix+"/{session_id}/executions/{execution_id}/output{?offset,limit}", "cell output",
		mcp.WithTemplateDescription("Everything that a cell showed, as text, "+words.Thousands(int64(s.budget.chars))+
			" characters at once: offset skips, limit asks for more or fewer"),
		mcp.WithTemplateMIMEType("text/plain")), s.resource(s.ofCell(s.readOutput)))
	srv.AddResourceTemplate(mcp.NewResourceTemplate(uriPrefix+"/{session_id}/executions/{execution_id}/outputs/{index}", "single output",
		mcp.WithTemplateDescription("One output of a cell in all its forms, as the kernel sent it: an image in its full size, an audio, HTML")),
		s.resource(s.ofCell(s.readForms)))
	srv.AddResourceTemplate(mcp.NewResourceTemplate(uriPrefix+"/{session_id}/"+partNotebook, "notebook",
		mcp.WithTemplateDescription("All cells of a session with their outputs, as a Jupyter notebook; also of a session that has ended"),
		mcp.WithTemplateMIMEType(notebook.MIMEType)), s.resource(s.readNotebook))
	srv.AddResourceTemplate(mcp.NewResourceTemplate(uriPrefix+"/{session_id}/"+partLog, "session log",
		mcp.WithTemplateDescription("The kernels that a session has had, what ended them, and the end of what the container or sandbox has logged"),
		mcp.WithTemplateMIMEType("text/plain")), s.resource(s.readLog))
}

// The parts of a session that are resources of their own.
const (
	partNotebook = "notebook.ipynb"
	partLog      = "log"
)

// address is what the URI of a resource says.
type address struct {
	uri           string
	session       string
	part          string // of a whole session; empty for a cell's
	execution     int
	index         int
	offset, limit int64
}

// parseAddress reads a URI strictly: what it does not know is an error.
func parseAddress(uri string, limit int64) (address, error) {
	a := address{uri: uri, limit: limit}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "cellblock" || u.Host != "sessions" || u.User != nil || u.Fragment != "" {
		return a, notAnAddress(uri)
	}
	parts, query := strings.Split(strings.TrimPrefix(u.Path, "/"), "/"), u.Query()
	a.session = parts[0]
	if len(parts) == 2 && len(query) == 0 && (parts[1] == partNotebook || parts[1] == partLog) {
		a.part = parts[1]
		return a, nil
	}
	if len(parts) < 4 || parts[1] != "executions" {
		return a, notAnAddress(uri)
	}
	switch {
	case len(parts) == 4 && parts[3] == "output":
		err = readQuery(query, &a)
	case len(parts) == 5 && parts[3] == "outputs" && len(query) == 0:
		a.index, err = strconv.Atoi(parts[4])
	default:
		return a, notAnAddress(uri)
	}
	n, numberErr := strconv.Atoi(parts[2])
	if err != nil || numberErr != nil || n < 1 || a.index < 0 {
		return a, notAnAddress(uri)
	}
	a.execution = n
	return a, nil
}

func readQuery(query url.Values, a *address) (err error) {
	for name, values := range query {
		var n int64
		if n, err = strconv.ParseInt(values[len(values)-1], 10, 64); err != nil || n < 0 {
			return fmt.Errorf("%s is not a number", name)
		}
		switch name {
		case "offset":
			a.offset = min(n, 1<<40)
		case "limit":
			a.limit = max(1, min(n, maxPage))
		default:
			return fmt.Errorf("%s is not known", name)
		}
	}
	return nil
}

func notAnAddress(uri string) error {
	return fault.New(fault.NotFound, "there is no resource %q", clean(uri)).
		WithHint("write it as %s, …/outputs/INDEX or %s", outputURI("SESSION_ID", 1)+"?offset=0", notebookURI("SESSION_ID"))
}

// reading makes the contents of a resource for an owner.
type reading func(ctx context.Context, o sessions.Owner, a address) ([]mcp.ResourceContents, error)

// resource makes a handler of a reading. It checks what every reading needs: the scope, and whose it is.
func (s *service) resource(read reading) server.ResourceTemplateHandlerFunc {
	return func(ctx context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		contents, err := s.readResource(ctx, r.Params.URI, read)
		if err != nil {
			transport.Fail(ctx, err)
			return nil, shown{err}
		}
		return contents, nil
	}
}

// shown is an error as the reader of a resource gets to see it, with its hint.
type shown struct{ err error }

func (e shown) Error() string { return terminal.Plain(fault.Text(e.err)) }

func (e shown) Unwrap() error { return e.err }

func (s *service) readResource(ctx context.Context, uri string, read reading) ([]mcp.ResourceContents, error) {
	if !s.Allowed(ctx, ScopeRead) {
		return nil, auth.NeedsScope("reading this resource", ScopeRead)
	}
	a, err := parseAddress(uri, int64(s.budget.chars))
	if err != nil {
		return nil, err
	}
	owner, err := s.Owner(ctx)
	if err != nil {
		return nil, err
	}
	return read(ctx, owner, a)
}

// ofCell is a reading of one cell.
func (s *service) ofCell(read func(e *sessions.Execution, a address) ([]mcp.ResourceContents, error)) reading {
	return func(ctx context.Context, o sessions.Owner, a address) ([]mcp.ResourceContents, error) {
		e, err := s.Sessions.Execution(ctx, o, a.session, a.execution)
		if err != nil {
			return nil, err
		}
		return read(e, a)
	}
}

// readOutput is a page of the whole output. Where more follows, its last line says how to read on.
func (s *service) readOutput(e *sessions.Execution, a address) ([]mcp.ResourceContents, error) {
	p := s.readPage(e, a.offset, a.limit)
	c := mcp.TextResourceContents{
		URI: a.uri, MIMEType: "text/plain", Text: p.text,
		Meta: map[string]any{ExecutionMeta: map[string]any{"offset": p.from, "next": p.next, "characters": p.total, "lines": p.lines}},
	}
	if !p.last() {
		c.Text = joinLines(c.Text, fmt.Sprintf("… %s more: %s?offset=%d …", words.Count(p.total-p.next, "character"), outputURI(a.session, a.execution), p.next))
	}
	return []mcp.ResourceContents{c}, nil
}

// readForms is one output in all its forms.
func (s *service) readForms(e *sessions.Execution, a address) ([]mcp.ResourceContents, error) {
	out, ok := e.OutputAt(a.index)
	if !ok && out.Notice != nil {
		return nil, fault.New(fault.NotFound, "output %d of cell %d of session %q is not kept: %s", a.index, a.execution, a.session, out.Notice)
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "cell %d of session %q has no output %d", a.execution, a.session, a.index)
	}
	size := 0
	for _, value := range out.Data {
		size += len(value)
	}
	if size > maxForms {
		return nil, fault.New(fault.Invalid, "the output has %s, more than the %s that are sent in one piece", words.Bytes(int64(size)), words.Bytes(maxForms)).
			WithHint("let code write it into a file in the workspace")
	}
	return formsOf(out, a.uri), nil
}

func formsOf(out kernels.Output, uri string) []mcp.ResourceContents {
	text := func(mime, text string) mcp.ResourceContents {
		return mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: text}
	}
	switch out.Kind {
	case kernels.OutputStream:
		return []mcp.ResourceContents{text("text/plain", out.Text)}
	case kernels.OutputError:
		return []mcp.ResourceContents{text("text/plain", terminal.Plain(strings.Join(out.Error.Traceback, "\n")))}
	}
	var forms []mcp.ResourceContents
	for _, mime := range slices.Sorted(maps.Keys(out.Data)) {
		if isText(mime) {
			forms = append(forms, text(mime, formText(mime, out.Data[mime])))
			continue
		}
		blob := strings.Join(strings.Fields(mimeText(out.Data[mime])), "")
		if _, err := picture.DecodeBase64(blob); err != nil {
			forms = append(forms, text(mime, blob))
			continue
		}
		forms = append(forms, mcp.BlobResourceContents{URI: uri, MIMEType: mime, Blob: blob})
	}
	return forms
}

func formText(mime string, value json.RawMessage) string {
	if strings.HasSuffix(mime, "json") {
		return compact(value)
	}
	return mimeText(value)
}
