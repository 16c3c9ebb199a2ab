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

func TestAboutCell(t *testing.T) {
	with := func(fields any) *mcp.CallToolResult {
		r := &mcp.CallToolResult{}
		r.Meta = &mcp.Meta{AdditionalFields: map[string]any{mcpserver.ExecutionMeta: fields}}
		return r
	}
	for _, tt := range []struct {
		name   string
		result *mcp.CallToolResult
		want   about
		goesOn bool
	}{
		{"running", with(map[string]any{"session_id": "s", "execution_id": 3.0, "phase": "running", "since": 7.0}), about{"s", 3, "running", 7, false}, true},
		{"queued", with(map[string]any{"session_id": "s", "execution_id": 3.0, "phase": "queued", "since": 0.0}), about{"s", 3, "queued", 0, false}, true},
		{"ended", with(map[string]any{"session_id": "s", "execution_id": 3.0, "phase": "ended", "since": 7.0, "noted": true}), about{"s", 3, "ended", 7, true}, false},
		{"an older server", &mcp.CallToolResult{}, about{}, false},
		{"something else", with("x"), about{}, false},
	} {
		if got := aboutCell(tt.result); got != tt.want || got.goesOn() != tt.goesOn {
			t.Errorf("%s: %+v %v", tt.name, got, got.goesOn())
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

// What the server says before a cell's output is not for the program that reads the output; what the cell prints like it is.
func TestNotesAreNoOutput(t *testing.T) {
	for name, noted := range map[string]bool{"the server's": true, "the cell's": false} {
		t.Run(name, func(t *testing.T) {
			result := mcp.NewToolResultText("Note: The kernel ended. Not back: what was done after cell 1" + restoringLater + ", background work.")
			result.Content = append(result.Content, mcp.NewTextContent("[1, 2]"), mcp.NewTextContent("[session s · cell 2 · ok]"))
			result.Meta = &mcp.Meta{AdditionalFields: map[string]any{mcpserver.ExecutionMeta: map[string]any{"session_id": "s", "noted": noted}}}
			var stdout, stderr strings.Builder
			if err := (execOptions{}).print(t.Context(), nil, result, &liveOutput{w: &stdout}, &stderr); err != nil {
				t.Fatal(err)
			}
			const note = "Note: The kernel ended. Not back: what was done after cell 1, background work.\n"
			if out, said := strings.Contains(stdout.String(), note), strings.Contains(stderr.String(), note); out == noted || said != noted {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
			if !strings.HasSuffix(stdout.String(), "[1, 2]\n") {
				t.Errorf("stdout %q", stdout.String())
			}
		})
	}
}
