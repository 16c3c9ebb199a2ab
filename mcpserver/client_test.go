package mcpserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

func TestLabel(t *testing.T) {
	long := strings.Repeat("long", 1_000_000)
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "claude-code 2.1.0", "claude-code 2.1.0"},
		{"nothing", " ", ""},
		{"lines", "a\nb\r\n\tc", "a b c"},
		{"escapes", "\x1b[31mred\x1b[0m\a", "red"},
		{"what turns text around", "a\u202eb\u200bc", "a b c"},
		{"no UTF-8", "a\xffb", "a�b"},
		{"long", long, long[:maxClientName] + " …"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := label(tt.in, maxClientName); got != tt.want {
				t.Errorf("got %.200q", got)
			}
		})
	}
}

// Who ran a cell is kept with it, in each revision, and no model gets to see it.
func TestClientIsKeptWithTheCell(t *testing.T) {
	const info = `{"name":"Tester\n\u001b[1m","version":"9.8.7"}`
	store := storetest.NewMemory()
	w := newWorld(t, func(c *sessions.Config) { c.Store = store })
	url := serveHTTP(t, w)
	post := func(body string, header ...string) (http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		header = append(header, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header, string(answer)
	}
	call := func(id, tool, arguments, meta string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + meta + `}}`
	}
	const cell = `{"code":"print a","session_id":"s"}`

	agreed, _ := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":` + info + `}}`)
	id := []string{"Mcp-Session-Id", agreed.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
	_, first := post(call("2", "execute_python", cell, ""), id...)
	meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":` + info + `}`
	modern := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "execute_python"}
	_, second := post(call("3", "execute_python", cell, meta), modern...)
	_, listed := post(call("4", "list_executions", `{"session_id":"s"}`, ""), id...)
	_, read := post(call("5", "get_execution", `{"session_id":"s","execution_id":"1"}`, ""), id...)
	for _, answer := range []string{first, second, listed, read} {
		if strings.Contains(answer, "Tester") || strings.Contains(answer, `"error"`) {
			t.Errorf("a model gets to see %s", answer)
		}
	}

	session, err := store.Session(t.Context(), w.owner, "s")
	if err != nil {
		t.Fatal(err)
	}
	cells, err := store.Executions(t.Context(), session.Ref, 1, 10, 0)
	if err != nil || len(cells) != 2 {
		t.Fatalf("%d cells, %v", len(cells), err)
	}
	for _, c := range cells {
		if c.Caller != "Tester 9.8.7" {
			t.Errorf("cell %d was run by %q", c.Number, c.Caller)
		}
	}

	// It knows what it has asked for.
	if _, restarted := post(call("6", "restart_session", `{"session_id":"s"}`, ""), id...); !strings.Contains(restarted, "Variables are lost, files are kept.") {
		t.Error(restarted)
	}
	if _, third := post(call("7", "execute_python", cell, ""), id...); !strings.Contains(third, "cell 3 · ok") || strings.Contains(third, "restarted") {
		t.Error(third)
	}
}
