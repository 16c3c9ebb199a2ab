package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

const (
	// execWait is how long one call waits for the cell; a longer one is read on with further calls.
	execWait = time.Hour
	// interruptWait bounds the call that stops the cell when exec is interrupted.
	interruptWait = 15 * time.Second
)

// callTool calls a tool and hears how it goes on.
func callTool(ctx context.Context, c *client.Client, name string, args map[string]any) (*mcp.CallToolResult, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = name, args
	req.Params.Meta = &mcp.Meta{ProgressToken: "exec"}
	for {
		result, err := c.CallTool(ctx, req)
		if err != nil {
			return nil, notOffered(ctx, c, name, callError(ctx, err))
		}
		if !result.IsError || !waited(ctx, textOf(result)) {
			return result, nil
		}
	}
}

// whatOfCell adds to an error that ended the wait for a cell what becomes of that cell. The session may be unknown: "".
func whatOfCell(ctx context.Context, session string, err error) error {
	owner, see := "its session", "cellblock sessions ls"
	if session != "" {
		owner, see = "session "+session, "cellblock sessions show "+session
	}
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Cancelled, "interrupted; the cell was told to stop, and %s keeps its variables", owner).WithHint("See: %s", see)
	case errors.Is(err, errServerGone):
		return fault.New(fault.Unavailable, "%w; the cell may go on", errServerGone).WithHint("See: %s", see)
	}
	return err
}

// about is the cell that a result is about.
type about struct {
	SessionID   string `json:"session_id"`
	ExecutionID int    `json:"execution_id"`
	Phase       string `json:"phase"`
	Since       int    `json:"since"`
	// Noted tells that the result's first block is the server's own.
	Noted bool `json:"noted"`
}

// aboutCell reads what a result tells programs; it is zero where that is nothing.
func aboutCell(result *mcp.CallToolResult) about {
	if result.Meta == nil {
		return about{}
	}
	var a about
	raw, err := json.Marshal(result.Meta.AdditionalFields[mcpserver.ExecutionMeta])
	if err != nil || json.Unmarshal(raw, &a) != nil {
		return about{}
	}
	return a
}

// goesOn tells whether the result tells only a part of its cell.
func (a about) goesOn() bool { return a.Phase == "queued" || a.Phase == "running" }

// readOn waits for more of the cell. When ctx ends first, the cell is stopped: nobody waits for it any more.
func (a about) readOn(ctx context.Context, c *client.Client) (*mcp.CallToolResult, error) {
	result, err := callTool(ctx, c, "get_execution", map[string]any{
		"session_id": a.SessionID, "execution_id": a.ExecutionID, "since": a.Since, "wait_seconds": execWait.Seconds(),
	})
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), interruptWait)
		defer cancel()
		_, _ = callTool(late, c, "interrupt_session", map[string]any{"session_id": a.SessionID}) // ctx's error is the one to tell
	}
	return result, err
}
