package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/sessions"
)

// The tools for the pages of MCP Apps.
const (
	showCell      = "show_cell"
	interruptCell = "interrupt_cell"
)

const (
	// newsWait is how long show_cell waits for news of a cell. Some hosts give up after 30 seconds.
	newsWait = 10 * time.Second
	// maxSearchedCells and maxSearchedSessions bound where a cell is looked for whose number is not known: the last ones.
	maxSearchedCells, maxSearchedSessions = 20, 20
	// maxHave bounds what a page names, in parts of a cell.
	maxHave = 2000
)

// appToolSpecs are the tools of the page, if there is one.
func (s *service) appToolSpecs() []toolSpec {
	if s.App == nil {
		return nil
	}
	return []toolSpec{{
		name: showCell, title: "Show a cell",
		description: "Not for models, which read a cell with " + getExecution + ". For the page that shows it in the conversation: the cell as HTML, as soon as there is news.",
		input: []mcp.ToolOption{
			mcp.WithString("session_id", mcp.Description("Its session; without it, the cell is looked for in new ones")),
			mcp.WithInteger("execution_id", mcp.Description("Its number; without it, the cell is one that has not ended, of this code or script")),
			mcp.WithString("code", mcp.Description("Its code")), mcp.WithString("path", mcp.Description("The script that it runs")),
			mcp.WithString("seen", mcp.Description("What the result before told; it is waited for something new")),
			mcp.WithArray("have", mcp.WithStringItems(), mcp.Description("Versions of parts that are left out")),
			mcp.WithArray("whole", mcp.WithStringItems(), mcp.Description("Keys of items that are not folded")),
		},
		readOnly: true, idempotent: true, handle: s.showCell,
	}, {
		name: interruptCell, title: "Interrupt a cell",
		description: "Not for models, which stop a cell with interrupt_session. For the page that shows it in the conversation: its user stops it.",
		input:       []mcp.ToolOption{sessionArgument(), executionArgument()},
		destructive: true, idempotent: true, handle: s.interruptCell,
	}}
}

// showCell waits for news of a cell and tells what there is of it. A person looks: that uses no session.
func (s *service) showCell(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx = sessions.Looking(ctx)
	a := argumentsOf(r, "session_id", "execution_id", "code", "path", "seen", "have", "whole")
	id, number, seen := a.text("session_id"), a.index("execution_id", 1, 0), a.text("seen")
	want := wanted{code: a.text("code"), path: a.text("path")}
	query := AppQuery{Have: a.list("have"), Whole: a.list("whole")}
	if len(query.Have)+len(query.Whole) > maxHave {
		a.fail("have: names too much")
	}
	if number == 0 && want == (wanted{}) {
		a.missing("execution_id")
	}
	if number == 0 && a.err == nil {
		owner, err := s.Owner(ctx)
		if err != nil {
			return toolError(err), nil
		}
		if id, number = s.awaitCell(ctx, owner, id, want); number == 0 {
			return shownCell(AppCell{Status: "absent", Items: []AppPart{}}, "no such cell runs yet"), nil
		}
	}
	e, err := s.execution(ctx, a, id, number)
	if err != nil {
		return toolError(err), nil
	}
	owner, err := s.Owner(ctx)
	if err != nil {
		return toolError(err), nil
	}
	news := s.awaitNews(ctx, owner, e, seen)
	cell := s.App.Cell(e, query)
	cell.Session, cell.Number, cell.Seen = e.SessionID(), e.Number(), news.seen()
	cell.Ended = news.phase == sessions.PhaseEnded
	cell.Interrupts = cell.Status == string(sessions.PhaseRunning) && s.Allowed(ctx, ScopeManage)
	if where := whereNow(e); cell.Status == string(sessions.PhaseQueued) || where == waitsForUser {
		cell.Label = where
	}
	v := view{next: news.produced}
	if !cell.Ended {
		v.err = errWaitOver
	}
	return about(e, v, shownCell(cell, fmt.Sprintf("cell %d of session %s: %s", cell.Number, cell.Session, cell.Label))), nil
}

// shownCell is a result for a page. Its text is for whoever reads what pages do.
func shownCell(cell AppCell, text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}, StructuredContent: cell}
}

// standing is how far a cell is, as a page has seen it.
type standing struct {
	phase                sessions.Phase
	generation, produced int
	asks                 bool
}

func standingOf(e *sessions.Execution) standing {
	phase, _ := e.Phase()
	return standing{phase, e.Generation(), e.Produced(), e.Prompt() != nil}
}

func (s standing) seen() string {
	return fmt.Sprintf("%s %d %d %v", s.phase, s.generation, s.produced, s.asks)
}

// awaitNews waits until a cell is further than somebody has seen it, if it has not ended, and returns where it was before anybody
// looks at it.
func (s *service) awaitNews(ctx context.Context, o sessions.Owner, e *sessions.Execution, seen string) standing {
	at := standingOf(e)
	if at.seen() != seen || at.phase == sessions.PhaseEnded {
		return at
	}
	ctx, cancel := context.WithTimeout(ctx, newsWait)
	from, output := at.produced, make(chan struct{})
	go func() {
		defer close(output)
		for range e.OutputsFrom(ctx, from) { //nolint:errcheck // who looks at the cell sees why
			return
		}
	}()
	defer func() { cancel(); <-output }()
	for {
		changed := s.Sessions.Changed(o, e.SessionID())
		if at = standingOf(e); at.seen() != seen {
			return at
		}
		select {
		case <-changed:
		case <-output:
			return standingOf(e)
		case <-ctx.Done():
			return at
		}
	}
}

// wanted is what is known of a cell whose number is not: its code, or the script that it runs.
type wanted struct{ code, path string }

func (w wanted) is(info sessions.ExecutionInfo) bool {
	switch {
	case info.Phase == sessions.PhaseEnded:
		return false // its call has a result, which names it
	case w.path != "":
		return info.File != "" && (w.path == info.File || strings.HasSuffix(w.path, "/"+info.File))
	}
	return info.File == "" && info.Code == w.code
}

// awaitCell waits until an owner has the cell that is wanted, and returns the newest: its call may not have come yet. The number is 0
// where there is none.
func (s *service) awaitCell(ctx context.Context, o sessions.Owner, id string, want wanted) (session string, number int) {
	ctx, cancel := context.WithTimeout(ctx, newsWait)
	defer cancel()
	for {
		changed := s.Sessions.Changed(o, id)
		for _, in := range s.searched(ctx, o, id) {
			infos, err := s.Sessions.Executions(ctx, o, in, maxSearchedCells)
			if err != nil {
				continue // there is no such session yet
			}
			for _, info := range slices.Backward(infos) {
				if want.is(info) {
					return in, info.Number
				}
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", 0
		}
	}
}

// searched are the sessions in which a cell is looked for. A call that names none runs in one that is made for it: no other conversation's
// cell is taken for its own because that has the same code.
func (s *service) searched(ctx context.Context, o sessions.Owner, id string) (ids []string) {
	if id != "" {
		return []string{id}
	}
	infos, err := s.Sessions.List(ctx, o)
	if err != nil {
		return nil
	}
	for _, info := range infos {
		if sessionid.Minted(info.ID) && info.Executions == 1 && len(ids) < maxSearchedSessions {
			ids = append(ids, info.ID)
		}
	}
	return ids
}

// interruptCell stops the cell that a person saw run, unless that would cost the session's variables.
func (s *service) interruptCell(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "execution_id")
	id, number := a.required("session_id"), a.number("execution_id")
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	report, err := s.Sessions.TryInterrupt(ctx, owner, id, number)
	switch {
	case fault.KindOf(err) == fault.Conflict: // another one runs
		return mcp.NewToolResultText("the cell does not run"), nil
	case err != nil:
		return toolError(err), nil
	case !report.Ran && !report.RunsOn:
		return mcp.NewToolResultText("the cell does not run"), nil
	case report.RunsOn:
		return toolError(fault.New(fault.Conflict, "the cell does not stop: what it does cannot be interrupted, and it runs on").
			WithHint("a restart of its kernel stops it, and its variables are lost")), nil
	}
	return mcp.NewToolResultText("interrupted"), nil
}
