package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
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

// A server that dies while it answers is said to be gone, and so is what that means for the cell.
func TestServerThatGoesAway(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		switch asked.Method {
		case "initialize":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, asked.ID)
		case "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": begun\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer server.Close()
	c, err := dialMCP(t.Context(), server.URL, "token", func(mcp.JSONRPCNotification) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for session, see := range map[string]string{"a": "cellblock sessions show a", "": "cellblock sessions ls"} {
		o := execOptions{session: session, language: "python"}
		_, err = o.cell(t.Context(), c, &liveOutput{w: io.Discard}, "1", io.Discard)
		if want := "the server went away; the cell may go on\nHint: See: " + see; err == nil || fault.Text(err) != want || fault.ExitCode(err) != 69 {
			t.Errorf("exit status %d: %v", fault.ExitCode(err), err)
		}
	}
}

func TestWhatOfCell(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	plain := fault.New(fault.Busy, "full")
	for _, tt := range []struct {
		name, session string
		ctx           context.Context
		err           error
		want          string
		exit          int
	}{
		{"interrupted", "a", over, plain, "session a keeps its variables", 130},
		{"interrupted, no name yet", "", over, plain, "its session keeps its variables", 130},
		{"the server is gone", "a", t.Context(), errServerGone, "sessions show a", 69},
		{"anything else", "a", t.Context(), plain, "full", 75},
	} {
		if err := whatOfCell(tt.ctx, tt.session, tt.err); !strings.Contains(fault.Text(err), tt.want) || fault.ExitCode(err) != tt.exit {
			t.Errorf("%s: exit status %d: %s", tt.name, fault.ExitCode(err), fault.Text(err))
		}
	}
}

// What became of the cell is told also when its image cannot be saved.
func TestStatusLineOutlivesAnImage(t *testing.T) {
	result := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewImageContent("AA==", "image/png"), mcp.NewTextContent("ok · session a")}}
	taken := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	o := execOptions{images: filepath.Join(taken, "x")}
	err := o.print(t.Context(), nil, result, &liveOutput{w: io.Discard}, &stderr)
	if err == nil || !strings.Contains(stderr.String(), "session a") {
		t.Errorf("%v, printed %q", err, stderr.String())
	}
}
