package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver/terminal"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

func executionArgument() mcp.ToolOption {
	return mcp.WithInteger("execution_id", mcp.Required(), mcp.Min(1.0), mcp.Description("The cell's number"))
}

func (s *service) getTool() toolSpec {
	return toolSpec{
		name: getExecution, title: "Read a cell's result",
		description: "Read a cell's result, as often as you like; of one that still runs after wait_seconds, what it " +
			"has produced so far. With offset: a page of the whole output, where results leave out the middle.",
		input: []mcp.ToolOption{
			sessionArgument(), executionArgument(),
			mcp.WithInteger("since", mcp.Min(0.0), mcp.Description("Only what came after this mark")),
			mcp.WithInteger("offset", mcp.Min(0.0), mcp.Description("The whole output from this character on")),
			waitArgument("For the cell's end; 0: not at all"),
		},
		readOnly: true, idempotent: true, handle: s.getExecution,
	}
}

func (s *service) getExecution(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "execution_id", "since", "offset", "wait_seconds")
	id, number := a.required("session_id"), a.number("execution_id")
	since, offset, wait := a.index("since", 0, 0), a.index("offset", 0, -1), a.wait(defaultWait(r))
	e, err := s.execution(ctx, a, id, number)
	if err != nil {
		return toolError(err), nil
	}
	if offset >= 0 {
		return s.pageOf(e, int64(offset)), nil
	}
	v := s.follow(ctx, r, e, since, wait, nil)
	switch {
	case v.err == nil:
		return s.whole(ctx, e, v), nil
	case errors.Is(v.err, errWaitOver):
		return s.soFar(ctx, e, v), nil
	case ctx.Err() == nil, errors.Is(context.Cause(ctx), transport.ErrShutdown): // its caller is still there, and is told how to read on
		return s.notRun(ctx, e, v), nil
	}
	return toolError(fault.New(fault.Cancelled, "the call ended before its cell did (%w); the cell goes on", context.Cause(ctx))), nil
}

// execution finds the cell that a call is about, for a caller who may read it: with ScopeRead any, with a language's scope
// those of that language, because who may run a cell may read its result.
func (s *service) execution(ctx context.Context, a *arguments, id string, number int) (*sessions.Execution, error) {
	owner, err := s.caller(ctx, a)
	if err != nil {
		return nil, err
	}
	e, err := s.Sessions.Execution(ctx, owner, id, number)
	if err != nil {
		return nil, err
	}
	if scope := e.Language() + executeSuffix; !s.Allowed(ctx, ScopeRead) && !s.Allowed(ctx, scope) {
		return nil, auth.NeedsScope("reading cells of a "+e.Language()+" session", ScopeRead)
	}
	return e, nil
}

// whole is the result of a cell that has ended, for whoever asks afterwards: also what it produced after its end.
func (s *service) whole(ctx context.Context, e *sessions.Execution, v view) *mcp.CallToolResult {
	late := sessions.Late{Number: e.Number()}
	for _, out := range e.LateFrom(v.next) {
		late.Outputs = append(late.Outputs, out.Output)
		v.next = out.Next
	}
	result := s.report(ctx, e, v)
	end := len(result.Content) - 1
	result.Content = append(append(result.Content[:end:end], s.lateBlocks(late)...), result.Content[end])
	return about(e, v, result)
}

// pageOf is a page of the whole output, with where it ends and how to read on.
func (s *service) pageOf(e *sessions.Execution, offset int64) *mcp.CallToolResult {
	p := s.readPage(e, offset, int64(s.budget.chars))
	if offset > p.total {
		return toolError(fault.New(fault.Invalid, "offset: the output has %s characters", words.Thousands(p.total)).
			WithHint("read from a smaller offset; offset=0 reads from the beginning"))
	}
	how := fmt.Sprintf("%s · characters %s to %s of %s", phaseText(e.Info()), words.Thousands(p.from), words.Thousands(p.next), words.Thousands(p.total))
	if !p.last() {
		how += "; read on with " + place{session: e.SessionID(), execution: e.Number()}.readAt(p.next)
	}
	var content []mcp.Content
	if p.text != "" {
		content = append(content, mcp.NewTextContent(p.text))
	}
	return &mcp.CallToolResult{Content: append(content, mcp.NewTextContent(footer(e, how)))}
}

func (s *service) listExecutionsTool() toolSpec {
	return toolSpec{
		name: "list_executions", title: "List a session's cells",
		description: "List the last cells of a session, oldest first: status, time, first line of the code.",
		input: []mcp.ToolOption{sessionArgument(), mcp.WithInteger("limit", mcp.Min(1.0), mcp.DefaultNumber(defaultListed),
			mcp.Description("At most"))},
		output: executionsSchema, readOnly: true, idempotent: true, handle: s.listExecutions,
	}
}

// defaultListed is how many cells are listed when the call does not say.
const defaultListed = 20

// executionEntry is one cell in structured results.
type executionEntry struct {
	ID         int     `json:"execution_id"`
	Status     string  `json:"status"`
	Code       string  `json:"code"`
	File       string  `json:"file,omitempty"`
	Generation int     `json:"generation"`
	Started    string  `json:"started,omitempty"`
	Seconds    float64 `json:"seconds"`
	Restores   int     `json:"restores,omitempty"`
}

var executionsSchema = listSchema("executions", "execution_id", "status")

func (s *service) listExecutions(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "limit")
	id, limit := a.required("session_id"), a.index("limit", 1, defaultListed)
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	infos, err := s.Sessions.Executions(ctx, owner, id, limit)
	if err != nil {
		return toolError(err), nil
	}
	entries, lines := []executionEntry{}, []string{}
	for _, info := range infos {
		entries = append(entries, executionEntryOf(info))
		lines = append(lines, executionLine(info))
	}
	if len(infos) == 0 {
		lines = []string{"No cells yet."}
	} else if earlier := infos[0].Number - 1; earlier > 0 && len(infos) == limit {
		lines = append(lines, fmt.Sprintf("[%s before these; limit=%d lists all]", words.Count(int64(earlier), "cell"), limit+earlier))
	}
	return mcp.NewToolResultStructured(map[string]any{"executions": entries}, strings.Join(lines, "\n")), nil
}

// maxCodeLine is how much of a cell's code a list shows, in characters.
const maxCodeLine = 80

func executionEntryOf(i sessions.ExecutionInfo) executionEntry {
	entry := executionEntry{
		ID: i.Number, Status: phaseText(i), Code: firstLine(i.Title()), File: i.File, Generation: i.Generation, Restores: i.Restores,
		Seconds: i.Duration.Round(time.Millisecond).Seconds(),
	}
	if !i.Started.IsZero() {
		entry.Started = i.Started.UTC().Format(time.RFC3339)
	}
	return entry
}

// executionLine is a cell on one line: "3 · ok · 0.12 s · df.describe()".
func executionLine(i sessions.ExecutionInfo) string {
	parts := []string{fmt.Sprint(i.Number), phaseText(i)}
	if !i.Started.IsZero() {
		parts = append(parts, words.Took(i.Duration))
	}
	if i.Restores > 0 {
		parts = append(parts, fmt.Sprintf("cell %d run again", i.Restores))
	}
	return strings.Join(append(parts, firstLine(i.Title())), " · ")
}

// phaseText is a cell's status in one or two words.
func phaseText(i sessions.ExecutionInfo) string {
	switch {
	case i.Phase != sessions.PhaseEnded:
		return string(i.Phase)
	case i.Err != nil && i.Result.Cancelled:
		return "cancelled"
	case i.Err != nil:
		return "not run"
	}
	return statusText(i.Result)
}

func firstLine(code string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(code), "\n")
	if line = shorten(terminal.Plain(line), maxCodeLine); rest != "" && !strings.HasSuffix(line, "…") {
		line += " …"
	}
	return line
}
