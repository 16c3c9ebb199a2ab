package main

import (
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/mcpserver"
)

func TestStillRunning(t *testing.T) {
	about := func(fields any) *mcp.CallToolResult {
		r := &mcp.CallToolResult{}
		r.Meta = &mcp.Meta{AdditionalFields: map[string]any{mcpserver.ExecutionMeta: fields}}
		return r
	}
	for _, tt := range []struct {
		name   string
		result *mcp.CallToolResult
		want   unfinished
		ok     bool
	}{
		{"running", about(map[string]any{"session_id": "s", "execution_id": 3.0, "phase": "running", "since": 7.0}), unfinished{"s", 3, "running", 7}, true},
		{"queued", about(map[string]any{"session_id": "s", "execution_id": 3.0, "phase": "queued", "since": 0.0}), unfinished{"s", 3, "queued", 0}, true},
		{"ended", about(map[string]any{"session_id": "s", "execution_id": 3.0, "phase": "ended", "since": 7.0}), unfinished{"s", 3, "ended", 7}, false},
		{"an older server", &mcp.CallToolResult{}, unfinished{}, false},
		{"something else", about("x"), unfinished{}, false},
	} {
		if got, ok := stillRunning(tt.result); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: %+v %v", tt.name, got, ok)
		}
	}
}
