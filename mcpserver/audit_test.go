package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/request"
	"cellblock/sessions"
)

// auditedWorld is a world with an audit log, and what reads that after it was closed.
func auditedWorld(t *testing.T, required bool) (w *world, lines func() []map[string]any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(audit.Options{Path: path, Key: []byte("key"), Required: required})
	if err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, func(c *sessions.Config) {
		c.Ended = func(o sessions.Owner, e *sessions.Execution) { log.Append(CellEnded(o, e)) }
	})
	w.service.Audit = log
	w.server = w.service.server()
	t.Cleanup(w.kernels.StopAll)
	return w, func() (lines []map[string]any) {
		_ = w.service.Sessions.Shutdown(context.Background())
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(text) {
			var line map[string]any
			if err := json.Unmarshal(l, &line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		return lines
	}
}

// has checks that a line has all these members.
func has(t *testing.T, line map[string]any, want map[string]any) {
	t.Helper()
	for name, value := range want {
		if line[name] != value {
			t.Errorf("%s is %v, not %v: %v", name, line[name], value, line)
		}
	}
}

func TestCallsAreAudited(t *testing.T) {
	w, lines := auditedWorld(t, false)
	ctx := request.NewContext(t.Context(), request.Info{ID: "req-1", Address: "192.0.2.7"})
	ctx = auth.NewContext(ctx, auth.Principal{ClientID: "desktop-app"})
	w.callWith(ctx, map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "print hello\nused 12500us 4096"}})
	w.call("list_sessions", nil)
	w.call("write_file", map[string]any{"session_id": "s", "path": "a.txt", "content": "text of the file"})
	w.call("read_file", map[string]any{"session_id": "other", "path": "a.txt"})
	w.scopes = nil
	w.call("close_session", map[string]any{"session_id": "s"})
	if _, rpcError := w.request(t.Context(), "resources/read", map[string]any{"uri": "cellblock://sessions/s/notebook.ipynb"}); rpcError == nil {
		t.Error("a resource was read without a scope")
	}
	got := lines()
	sum := digest("print hello\nused 12500us 4096")
	if len(got) != 10 {
		t.Fatalf("%d lines: %v", len(got), got)
	}
	common := map[string]any{"request": "req-1", "address": "192.0.2.7", "subject": "alice", "client_id": "desktop-app", "tool": "execute_python", "scope": "python:execute",
		"session": "s", "language": "python", "code_sha256": sum, "code_bytes": 29.0}
	has(t, got[0], common)
	has(t, got[0], map[string]any{"event": "called", "status": nil})
	// The cell's end and its call's are told by two goroutines.
	answered, ended := got[1], got[2]
	if answered["event"] == "ended" {
		answered, ended = ended, answered
	}
	has(t, answered, common)
	has(t, answered, map[string]any{"event": "answered", "status": "ok", "execution": 1.0})
	has(t, ended, map[string]any{"event": "ended", "status": "ok", "execution": 1.0, "session": "s", "subject": "alice", "code_sha256": sum, "language": "python",
		"cpu_ms": 12.5, "peak_memory_bytes": 4096.0})
	has(t, got[3], map[string]any{"event": "answered", "tool": "list_sessions", "status": "ok", "scope": "sessions:read"})
	has(t, got[4], map[string]any{"event": "called", "tool": "write_file", "scope": "files:write"})
	has(t, got[5], map[string]any{"event": "answered", "tool": "write_file", "status": "ok"})
	has(t, got[6], map[string]any{"event": "answered", "tool": "read_file", "status": "not_found", "session": "other"})
	if files, _ := got[5]["files"].([]any); len(files) != 1 || files[0] != "a.txt" {
		t.Errorf("files: %v", got[5])
	}
	if got[3]["request"] == nil || got[3]["request"] == got[4]["request"] {
		t.Errorf("two calls, one id: %v", got[3:5])
	}
	// What was refused for want of a scope was called nonetheless.
	has(t, got[7], map[string]any{"event": "called", "tool": "close_session"})
	if reason, _ := got[8]["reason"].(string); got[8]["event"] != "denied" || !strings.Contains(reason, "scope") {
		t.Errorf("%v", got[8])
	}
	has(t, got[9], map[string]any{"event": "denied", "tool": "resources/read", "session": "s", "status": "forbidden"})
	for _, line := range got {
		if text, _ := json.Marshal(line); bytes.Contains(text, []byte("print hello")) || bytes.Contains(text, []byte("text of the file")) {
			t.Errorf("content is in the log: %s", text)
		}
	}
}

// A log that cannot be written stops what may change something, where it is required, and nothing else.
func TestRequiredAuditStopsCalls(t *testing.T) {
	for _, required := range []bool{true, false} {
		w, lines := auditedWorld(t, required)
		blocked := w.service.Audit.Path + ".lock" // a folder where a file is to be
		if err := errors.Join(os.Remove(blocked), os.Mkdir(blocked, 0o700)); err != nil {
			t.Fatal(err)
		}
		run := map[string]any{"session_id": "s", "code": "print hello"}
		got := w.call("execute_python", run)
		if got.isError != required || required && !strings.Contains(got.String(), "audit log cannot be written") {
			t.Errorf("required %v: %s", required, got)
		}
		if strings.Contains(got.String(), filepath.Dir(blocked)) {
			t.Errorf("a caller is told of the machine's folders: %s", got)
		}
		if list := w.call("list_sessions", nil); list.isError || strings.Contains(list.String(), "s · python") == required {
			t.Errorf("required %v: %s", required, list)
		}
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		if got := w.call("execute_python", run); got.isError {
			t.Errorf("required %v, and the log works again: %s", required, got)
		}
		lines()
	}
}
