package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// The tools of whoever operates the server. Nobody else sees them, and so no other model reads their descriptions; they are
// tools of their own, so that no argument of another decides whose sessions it is about.
const (
	listAllSessions = "list_all_sessions"
	stopAnySession  = "stop_any_session"
)

// ownedEntry is a session of anybody's in structured results.
type ownedEntry struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	sessionEntry
}

var allSessionsSchema = listSchema("sessions", "issuer", "subject", "session_id", "language", "state")

func (s *service) listAllTool() toolSpec {
	return toolSpec{
		name: listAllSessions, title: "List everybody's sessions",
		description: "For operators: list the running sessions of all owners. What they hold cannot be read.",
		output:      allSessionsSchema, readOnly: true, idempotent: true, handle: s.listAll,
	}
}

func (s *service) listAll(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if a := argumentsOf(r); a.err != nil {
		return toolError(a.err), nil
	}
	entries, lines := []ownedEntry{}, []string{}
	for _, o := range s.Sessions.All() {
		o.Image = s.Sessions.Config().NameOfImage(o.Owner, o.Info.Image)
		entries = append(entries, ownedEntry{o.Owner.Issuer, o.Owner.Subject, entryOf(o.Info)})
		lines = append(lines, plain(fmt.Sprintf("%s %s · %s", o.Owner.Issuer, o.Owner.Subject, lineOf(o.Info))))
	}
	if len(lines) == 0 {
		lines = []string{"No sessions."}
	}
	return mcp.NewToolResultStructured(map[string]any{"sessions": entries}, strings.Join(lines, "\n")), nil
}

func (s *service) stopAnyTool() toolSpec {
	return toolSpec{
		name: stopAnySession, title: "Stop anybody's session",
		description: "For operators: stop the kernel of somebody's session. Its files and history are kept for its owner.",
		input: []mcp.ToolOption{
			mcp.WithString("issuer", mcp.Required(), mcp.Description("From list_all_sessions")),
			mcp.WithString("subject", mcp.Required(), mcp.Description("From list_all_sessions")),
			sessionArgument(),
		},
		destructive: true, idempotent: true, handle: s.stopAny,
	}
}

func (s *service) stopAny(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "issuer", "subject", "session_id")
	owner := sessions.Owner{Issuer: a.required("issuer"), Subject: a.required("subject")}
	id := a.required("session_id")
	if a.err != nil {
		return toolError(a.err), nil
	}
	if err := s.Sessions.Close(ctx, owner, id, sessions.CloseOptions{Operator: true}); err != nil {
		if fault.KindOf(err) == fault.NotFound { // the owner's own hint lists the operator's sessions
			err = fault.New(fault.NotFound, "there is no session %q of %s at %s", id, plain(owner.Subject), plain(owner.Issuer)).
				WithHint("list_all_sessions names the ones that run, with issuer and subject")
		}
		return toolError(err), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Session %s of %s is stopped; its files and history are kept.", id, plain(owner.Subject))), nil
}
