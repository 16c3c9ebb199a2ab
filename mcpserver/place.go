package mcpserver

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/sessions"
)

// place says where what a result shows can be read again. The zero place is nowhere.
type place struct {
	session   string
	execution int
	// shift is what the session's number of the cell is more than its kernel's, which counts anew after a restart.
	shift int
	// partial: the result does not begin with the cell's first output, so that offsets in the whole are not known.
	partial bool
	// links: the client knows resource links, and the caller may read them.
	links bool
}

func (s *service) placeOf(ctx context.Context, e *sessions.Execution, from int) place {
	return place{
		session: e.SessionID(), execution: e.Number(), partial: from > 0,
		links: knowsLinks(server.RequestProtocolVersion(ctx)) && s.Allowed(ctx, ScopeRead),
	}
}

// shiftOf compares a cell's number with the one that its kernel gave it, which is known of a cell that has ended. Both rise by
// one from cell to cell, so that it holds for the earlier cells of that kernel too.
func shiftOf(number int, r sessions.Result) int {
	if r.ExecutionCount <= 0 {
		return 0
	}
	return number - r.ExecutionCount
}

// knowsLinks tells whether a revision of MCP has resource links in results. Revisions are dates; a client whose revision
// is not known gets none.
func knowsLinks(revision string) bool { return revision >= mcp.ProtocolVersion20250618 }

func (p place) known() bool { return p.execution > 0 }

// output is the address of everything that the cell showed, as text.
func (p place) output() string { return outputURI(p.session, p.execution) }

// one is the address of a single output in all its forms.
func (p place) one(index int) string {
	return fmt.Sprintf("%s/%s/executions/%d/outputs/%d", uriPrefix, p.session, p.execution, index)
}

// readAt is the call that reads the whole output from an offset on.
func (p place) readAt(offset int64) string {
	return fmt.Sprintf("get_execution(session_id=%q, execution_id=%d, offset=%d)", p.session, p.execution, offset)
}

// readOn says, behind a remark that something was left out, how to read on from an offset; nothing where that is not
// possible.
func (p place) readOn(readable bool, offset int64) string {
	if !readable || !p.known() || p.partial {
		return ""
	}
	return "; " + p.readAt(offset) + " reads on from here"
}

// link is a block that leads to the whole output.
func (p place) link() mcp.Content {
	return mcp.NewResourceLink(p.output(), fmt.Sprintf("Output of cell %d", p.execution), "Everything that the cell showed, as text",
		"text/plain")
}

// kept says where an output can be had that is not shown as it is; "" where that is nowhere.
func (p place) kept(index int) string {
	if !p.known() || index < 0 {
		return ""
	}
	return "; kept as " + p.one(index)
}

// keptFrom is kept of some outputs, from the first to the last of them.
func (p place) keptFrom(first, last int) string {
	kept := p.kept(first)
	if kept == "" {
		return ""
	}
	return fmt.Sprintf("%s, and so on to %d", kept, last)
}

const uriPrefix = "cellblock://sessions"

func notebookURI(session string) string { return uriPrefix + "/" + session + "/" + partNotebook }

func outputURI(session string, execution int) string {
	return fmt.Sprintf("%s/%s/executions/%d/output", uriPrefix, session, execution)
}
