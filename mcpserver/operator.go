package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/images/derived"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

// The tools of whoever operates the server. Nobody else sees them, and so no other model reads their descriptions; they are
// tools of their own, so that no argument of another decides whose sessions it is about.
const (
	listAllSessions = "list_all_sessions"
	stopAnySession  = "stop_any_session"
	showOwner       = "show_owner"
	forgetOwner     = "forget_owner"
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
		lines = append(lines, terminal.Plain(fmt.Sprintf("%s %s · %s", o.Owner.Issuer, o.Owner.Subject, lineOf(o.Info))))
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
		input:       append(ownerArguments(), sessionArgument()),
		destructive: true, idempotent: true, handle: s.stopAny,
	}
}

func ownerArguments() []mcp.ToolOption {
	return []mcp.ToolOption{
		mcp.WithString("issuer", mcp.Required(), mcp.Description("From list_all_sessions")),
		mcp.WithString("subject", mcp.Required(), mcp.Description("From list_all_sessions")),
	}
}

// owner is whom ownerArguments name.
func (a *arguments) owner() sessions.Owner {
	return sessions.Owner{Issuer: a.required("issuer"), Subject: a.required("subject")}
}

func (s *service) stopAny(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "issuer", "subject", "session_id")
	owner := a.owner()
	id := a.required("session_id")
	if a.err != nil {
		return toolError(a.err), nil
	}
	if err := s.Sessions.Close(ctx, owner, id, sessions.CloseOptions{Operator: true}); err != nil {
		if fault.KindOf(err) == fault.NotFound { // the owner's own hint lists the operator's sessions
			err = fault.New(fault.NotFound, "there is no session %q of %s at %s", id, terminal.Plain(owner.Subject), terminal.Plain(owner.Issuer)).
				WithHint("list_all_sessions names the ones that run, with issuer and subject")
		}
		return toolError(err), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Session %s of %s is stopped; its files and history are kept.", id, terminal.Plain(owner.Subject))), nil
}

func (s *service) showOwnerTool() toolSpec {
	return toolSpec{
		name: showOwner, title: "Count what somebody has",
		description: "For operators: how much of an owner forget_owner would delete.",
		input:       ownerArguments(),
		readOnly:    true, idempotent: true, handle: s.showOwner,
	}
}

func (s *service) showOwner(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "issuer", "subject")
	owner := a.owner()
	if a.err != nil {
		return toolError(a.err), nil
	}
	has, err := s.Sessions.Holding(ctx, owner)
	images, failed := s.imagesOf(ctx, owner)
	switch err = errors.Join(err, failed); {
	case err != nil:
		return toolError(err), nil
	case has.Sessions+len(images) == 0:
		return toolError(nothingKept(owner)), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Kept of %s at %s: %s (%d running, %s so far) with files and history, %s.", terminal.Plain(owner.Subject), terminal.Plain(owner.Issuer),
		words.Count(int64(has.Sessions), "session"), has.Running, words.Count(int64(has.Cells), "cell"), words.Count(int64(len(images)), "image"))), nil
}

// nothingKept is the error of whoever asks about an owner of whom there is nothing.
func nothingKept(owner sessions.Owner) error {
	return fault.New(fault.NotFound, "nothing is kept of %s at %s", terminal.Plain(owner.Subject), terminal.Plain(owner.Issuer)).
		WithHint("the audit log has the issuer and the subject of whoever called a tool, list_all_sessions of whoever has a session")
}

func (s *service) forgetTool() toolSpec {
	return toolSpec{
		name: forgetOwner, title: "Delete all that somebody has",
		description: "For operators: delete all sessions of an owner, also those that run, with files and history, and his images.",
		input:       ownerArguments(),
		destructive: true, idempotent: true, handle: s.forget,
	}
}

func (s *service) forget(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "issuer", "subject")
	owner := a.owner()
	if a.err != nil {
		return toolError(a.err), nil
	}
	deleted, err := s.Sessions.Forget(ctx, owner)
	images, failed := s.forgetImages(ctx, owner)
	err = errors.Join(err, failed)
	if deleted+images == 0 {
		if err == nil {
			err = nothingKept(owner)
		}
		return toolError(err), nil
	}
	text := fmt.Sprintf("Deleted of %s: %s with files and history, %s.", terminal.Plain(owner.Subject), words.Count(int64(deleted), "session"), words.Count(int64(images), "image"))
	if err != nil {
		return toolError(fault.New(fault.KindOf(err), "%s Not all went: %w", text, err).WithHint("the same call goes on with what is left")), nil
	}
	return mcp.NewToolResultText(text + " The audit log keeps its lines, and backups what they have. Whose token holds can begin anew."), nil
}

// imagesOf are the images that an owner has made.
func (s *service) imagesOf(ctx context.Context, o sessions.Owner) ([]derived.Entry, error) {
	if s.Images == nil {
		return nil, nil
	}
	all, err := s.Images.List(ctx, o.Key())
	return slices.DeleteFunc(slices.Clone(all), func(e derived.Entry) bool { return !imageEntryOf(e).Yours }), err
}

// forgetImages deletes the images of an owner.
func (s *service) forgetImages(ctx context.Context, o sessions.Owner) (deleted int, err error) {
	images, err := s.imagesOf(ctx, o)
	for _, entry := range images {
		if failed := s.Images.Delete(ctx, o.Key(), entry.Name); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		deleted++
	}
	return deleted, err
}
