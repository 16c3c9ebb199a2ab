package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/words"
	"cellblock/sessions"
)

// sessionEntry is one session in structured results.
type sessionEntry struct {
	ID          string  `json:"session_id"`
	Language    string  `json:"language"`
	Profile     string  `json:"profile,omitempty"`
	Image       string  `json:"image,omitempty"`
	State       string  `json:"state"`
	Executions  int     `json:"executions"`
	Generation  int     `json:"generation"`
	Queue       int     `json:"queue"`
	BusySeconds float64 `json:"busy_seconds"`
	Created     string  `json:"created"`
	LastUsed    string  `json:"last_used"`
	Ends        string  `json:"ends,omitempty"`
}

var sessionsSchema = listSchema("sessions", "session_id", "language", "state")

func sessionArgument() mcp.ToolOption {
	return mcp.WithString("session_id", mcp.Required(), mcp.Description("From an earlier call"))
}

func (s *service) listTool() toolSpec {
	return toolSpec{
		name: "list_sessions", title: "List sessions",
		description: "List your sessions: language, state, cells run and waiting, when the kernel ends.",
		output:      sessionsSchema, readOnly: true, idempotent: true, handle: s.listSessions,
	}
}

func (s *service) listSessions(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	owner, err := s.caller(ctx, argumentsOf(r))
	if err != nil {
		return toolError(err), nil
	}
	infos, err := s.Sessions.List(ctx, owner)
	if err != nil {
		return toolError(err), nil
	}
	entries, lines := []sessionEntry{}, []string{}
	for _, info := range infos {
		info.Image = s.Sessions.Config().NameOfImage(owner, info.Image)
		entries = append(entries, entryOf(info))
		lines = append(lines, lineOf(info))
	}
	if len(lines) == 0 {
		lines = []string{"No sessions. Running code with a session_id starts one."}
	}
	const most = 3
	ended, last, err := s.Sessions.Ended(ctx, owner, most)
	if err != nil {
		s.Logger.Warn("sessions that have ended could not be listed", slog.Any("error", err))
	}
	if ended > 0 && err == nil {
		lines = append(lines, endedLine(ended, last))
	}
	return mcp.NewToolResultStructured(map[string]any{"sessions": entries, "ended": ended}, strings.Join(lines, "\n")), nil
}

// endedLine says that there are more sessions than those that run, which were used last, and how to get at them.
func endedLine(n int, last []string) string {
	return fmt.Sprintf("[%s more ended, last %s; resources/list has all. Code with such a session_id goes on with its files]",
		words.Thousands(int64(n)), strings.Join(last, ", "))
}

func entryOf(i sessions.Info) sessionEntry {
	entry := sessionEntry{
		ID: i.ID, Language: i.Language, State: string(i.State), Executions: i.Executions, Generation: i.Generation,
		Queue: i.Queue, BusySeconds: i.Busy.Round(time.Millisecond).Seconds(),
		Created: i.Created.UTC().Format(time.RFC3339), LastUsed: i.LastUsed.UTC().Format(time.RFC3339),
	}
	if entry.Image = i.Image; i.Profile != sessions.DefaultProfile {
		entry.Profile = i.Profile
	}
	if !i.Ends.At.IsZero() {
		entry.Ends = i.Ends.At.UTC().Format(time.RFC3339)
	}
	return entry
}

// lineOf is a session on one line: "analysis · python · busy for 12 s · 7 cells · 1 waiting · used 3 s ago · kernel
// stops in 12 min unless a cell runs".
func lineOf(i sessions.Info) string {
	state := i.State.Plain()
	if i.Busy > 0 {
		state += " for " + words.Took(i.Busy)
	}
	parts := []string{i.ID, i.Language, state}
	if i.Profile != sessions.DefaultProfile {
		parts = append(parts, "profile "+i.Profile)
	}
	if i.Image != "" {
		parts = append(parts, "image "+clean(i.Image))
	}
	parts = append(parts, words.Count(int64(i.Executions), "cell"))
	if i.Saved() {
		parts = append(parts, "variables saved")
	}
	if i.Queue > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", i.Queue))
	}
	if i.Generation > 1 {
		parts = append(parts, fmt.Sprintf("kernel generation %d", i.Generation))
	}
	parts = append(parts, "used "+words.Ago(i.LastUsed))
	if i.State != sessions.Culled && !i.Ends.At.IsZero() && (i.Ends.Unused || time.Until(i.Ends.At) < time.Hour) {
		parts = append(parts, "kernel "+endsIn(i.Ends))
	}
	return strings.Join(parts, " · ")
}

func (s *service) interruptTool() toolSpec {
	return toolSpec{
		name: "interrupt_session", title: "Interrupt a session",
		description: "Stop a session's running cell. Variables are kept, unless its kernel must be restarted.",
		input:       []mcp.ToolOption{sessionArgument()}, destructive: true, idempotent: true, handle: s.interruptSession,
	}
}

func (s *service) interruptSession(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id")
	id := a.required("session_id")
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	report, err := s.Sessions.InterruptCell(ctx, owner, id, 0, clientName(ctx))
	switch {
	case err != nil:
		return toolError(err), nil
	case !report.Ran:
		left := "nothing was changed"
		if info, err := s.Sessions.Get(ctx, owner, id); err == nil && info.Queue > 0 {
			left = words.Count(int64(info.Queue), "waiting cell") + " will run when the kernel is ready, and can be interrupted then"
		}
		return mcp.NewToolResultText(fmt.Sprintf("Session %s was not running anything; %s.", id, left)), nil
	}
	was := "was stopped"
	if report.Already {
		was = "was being stopped already"
	}
	return mcp.NewToolResultText(fmt.Sprintf("The running cell of session %s %s. %s", id, was, ladderRemark(report))), nil
}

func (s *service) restartTool() toolSpec {
	return toolSpec{
		name: "restart_session", title: "Restart a session",
		description: "Give a session a fresh kernel: variables are lost, files are kept, a running cell ends.",
		input:       []mcp.ToolOption{sessionArgument()}, destructive: true, handle: s.restartSession,
	}
}

func (s *service) restartSession(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id")
	id := a.required("session_id")
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	info, err := s.Sessions.RestartBy(ctx, owner, id, clientName(ctx))
	if err != nil {
		return toolError(err), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Session %s has a fresh kernel (generation %d). Variables are lost, files are kept.",
		id, info.Generation)), nil
}

func (s *service) closeTool() toolSpec {
	return toolSpec{
		name: "close_session", title: "Close a session",
		description: "End a session and free its memory. Files are kept for its next use, unless delete_files.",
		input: []mcp.ToolOption{sessionArgument(), mcp.WithBoolean("delete_files",
			mcp.Description("Also delete its files and history, for good"))},
		destructive: true, idempotent: true, handle: s.closeSession,
	}
}

func (s *service) closeSession(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "delete_files")
	id, deleteFiles := a.required("session_id"), a.flag("delete_files")
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	state, files := "is closed", "its files are kept"
	if s.Sessions.IsClosed(ctx, owner, id) {
		state = "was closed already"
	}
	if err := s.Sessions.Close(ctx, owner, id, sessions.CloseOptions{DeleteFiles: deleteFiles}); err != nil {
		return toolError(err), nil
	}
	if deleteFiles {
		files = "its files and history are deleted"
	}
	return mcp.NewToolResultText(fmt.Sprintf("Session %s %s; %s.", id, state, files)), nil
}
