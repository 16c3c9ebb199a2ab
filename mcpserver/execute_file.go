package mcpserver

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// ExecuteFile is the name of a tool that is no language's, though it is called like one.
const ExecuteFile = "execute_file"

// languageEndings say which language a script is in.
var languageEndings = map[string]string{
	".py": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "typescript", ".sh": "bash", ".r": "r",
}

func (s *service) executeFileTool() toolSpec {
	return toolSpec{
		name: ExecuteFile, title: "Run a file",
		description: "Run a session's script like a cell: what it defines stays.",
		input: []mcp.ToolOption{
			sessionArgument(), pathArgument(),
			mcp.WithInteger("timeout_seconds", mcp.Description("Interrupt it after this time")),
			mcp.WithInteger("wait_seconds", mcp.Description("Return after this time; it goes on")),
		},
		destructive: true, handle: s.executeFile,
	}
}

func (s *service) executeFile(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "path", "timeout_seconds", "wait_seconds")
	name := a.required("path")
	request := sessions.Request{
		SessionID: a.required("session_id"), Timeout: a.seconds("timeout_seconds", s.Sessions.Config().MaxTimeout), Caller: clientName(ctx),
	}
	wait := a.wait(defaultWait(r))
	owner, err := s.caller(ctx, a)
	if err == nil {
		request.Language, err = s.languageOf(ctx, name)
	}
	if err == nil {
		request.Code, err = s.scriptCode(ctx, owner, request, name)
	}
	if err != nil {
		return toolError(err), nil
	}
	return s.runCell(ctx, r, owner, request, wait)
}

// languageOf returns the language of a script, which the caller may run.
func (s *service) languageOf(ctx context.Context, name string) (string, error) {
	language := languageEndings[strings.ToLower(path.Ext(name))]
	if !slices.Contains(s.Languages, language) {
		return "", fault.New(fault.Invalid, "path: %q is no script in a language that runs here", clean(name)).
			WithHint("its name must end like one in %s", strings.Join(s.Languages, " or "))
	}
	if scope := language + executeSuffix; !s.Allowed(ctx, scope) {
		return "", fault.New(fault.Forbidden, "running %s needs the scope %q, which this token does not have", languageTitle(language), scope).
			WithHint("use a token with the scope %q", scope)
	}
	return language, nil
}

// scriptCode is the cell that runs a script.
func (s *service) scriptCode(ctx context.Context, owner sessions.Owner, r sessions.Request, name string) (string, error) {
	code := s.Sessions.Config().Runtimes[r.Language].RunFile
	if code == "" {
		return "", fault.New(fault.Invalid, "%s cannot run files", languageTitle(r.Language)).WithHint("let code do it")
	}
	f, e, err := s.Sessions.OpenFile(ctx, owner, r.SessionID, name)
	if err != nil {
		return "", err
	}
	_ = f.Close() // the kernel opens what it runs itself, and has what it gets
	return strings.ReplaceAll(code, "{path}", literal(s.Sessions.PathInside(owner, r.SessionID, e.Path))), nil
}

// literal is a text as a literal that Python and JavaScript understand alike.
func literal(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always can be
	return strings.TrimSpace(b.String())
}
