package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"cellblock/e2e/rig"
)

const (
	// alices is a session of alice's, and nobodys one that never was. They differ in nothing else.
	alices, nobodys = "alices", "nobody"
	secret          = "the-secret-of-alice"
)

// ask sends one request of 2026-07-28 and returns the status and the message that answers it, whichever form it came in.
func ask(t *testing.T, url, token, method string, params map[string]any) string {
	t.Helper()
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "e2e", "version": "1"},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}}
	for _, key := range []string{"name", "uri"} {
		if name, ok := params[key].(string); ok {
			header.Set("Mcp-Name", name)
		}
	}
	resp, text := post(t, url, token, string(body), header)
	for line := range strings.Lines(text) { // of a stream, the message alone
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"id":1`) {
			text = data
		}
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(text))
}

// probes are calls about a session, or all of its kinds where a tool takes none. A tool that is not in it fails the test.
func probes(id string) map[string][]map[string]any {
	in := map[string]any{"session_id": id}
	with := func(more map[string]any) map[string]any {
		args := map[string]any{"session_id": id}
		for name, value := range more {
			args[name] = value
		}
		return args
	}
	return map[string][]map[string]any{
		"list_executions": {in}, "inspect_variables": {in}, "interrupt_session": {in}, "restart_session": {in}, "restore_session": {in},
		"get_execution": {with(map[string]any{"execution_id": 1}), with(map[string]any{"execution_id": 7})},
		"list_files":    {in, with(map[string]any{"path": "sub"}), with(map[string]any{"glob": "*"})},
		"read_file":     {with(map[string]any{"path": "secret.txt"}), with(map[string]any{"path": "../secret.txt"}), with(map[string]any{"path": "/workspace/secret.txt"})},
		"delete_file":   {with(map[string]any{"path": "secret.txt"})},
		"execute_file":  {with(map[string]any{"path": "run.py"})},
		"close_session": {in, with(map[string]any{"delete_files": true})},
	}
}

// elsewhere are the tools that no other's session can be named to, or that make one, which is then the caller's own.
var elsewhere = map[string]bool{"list_sessions": true, "health": true, "write_file": true}

// makes tells whether a tool runs cells of a language, in a session that is then the caller's.
func makes(tool string) bool { return strings.HasPrefix(tool, "execute_") && tool != "execute_file" }

func resourcesOf(id string) []string {
	at := "cellblock://sessions/" + id
	return []string{
		at + "/notebook.ipynb", at + "/log", at + "/files/secret.txt", at + "/files/..%2Fsecret.txt", at + "/executions/1/output",
		at + "/executions/1/outputs/0", at + "/executions/7/output", at,
	}
}

// TestTenancy lets a stranger try everything that a server offers on a session of another, while both are at work. He gets
// the answers that he would get if there were none: the same bytes, but for the id.
func TestTenancy(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		aliceToken, bobToken := s.Token(t, "--subject", "alice"), s.Token(t, "--subject", "bob")
		alice, bob := s.Connect(t, aliceToken, false), s.Connect(t, bobToken, false)
		python(t, alice, alices, "secret = '"+secret+"'; open('secret.txt', 'w').write(secret); open('run.py', 'w').write('print(secret)'); print(secret)")
		python(t, bob, "bobs", "1")
		stop := work(t, alice, bob)
		defer stop()
		tryTools(t, s.URL, bobToken)
		for i, uri := range resourcesOf(alices) {
			same(t, uri, ask(t, s.URL, bobToken, "resources/read", map[string]any{"uri": uri}),
				ask(t, s.URL, bobToken, "resources/read", map[string]any{"uri": resourcesOf(nobodys)[i]}))
		}
		for _, method := range []string{"resources/list", "resources/templates/list", "tools/list", "prompts/list"} {
			if got := ask(t, s.URL, bobToken, method, map[string]any{}); strings.Contains(got, alices) || strings.Contains(got, secret) {
				t.Errorf("%s shows what is alice's: %s", method, got)
			}
		}
		tryTransport(t, s.URL, aliceToken, bobToken)
		tryPaths(t, s, bob)
		stop()
		wantText(t, python(t, alice, alices, "print(secret, open('secret.txt').read())").Text, secret+" "+secret)
		if sessions := call(t, bob, "list_sessions", nil).Text; strings.Contains(sessions, alices) || !strings.Contains(sessions, "bobs") {
			t.Errorf("bob has\n%s", sessions)
		}
	})
}

// same compares the answer about another's session with that about one that never was.
func same(t *testing.T, what, others, none string) {
	t.Helper()
	if strings.Contains(others, secret) {
		t.Errorf("%s: the secret is out: %s", what, others)
	}
	if strings.ReplaceAll(others, alices, nobodys) != none {
		t.Errorf("%s: a session of another is told from none:\n%s\n%s", what, others, none)
	}
}

func tryTools(t *testing.T, url, token string) {
	t.Helper()
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	_, body, _ := strings.Cut(ask(t, url, token, "tools/list", map[string]any{}), " ")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Result.Tools) == 0 {
		t.Fatalf("no tools: %v\n%s", err, body)
	}
	others, none := probes(alices), probes(nobodys)
	for _, tool := range list.Result.Tools {
		if len(others[tool.Name]) == 0 && !elsewhere[tool.Name] && !makes(tool.Name) {
			t.Errorf("%s is not tried: tell this test how to name another's session to it", tool.Name)
		}
		for i, args := range others[tool.Name] {
			same(t, fmt.Sprint(tool.Name, args), ask(t, url, token, "tools/call", map[string]any{"name": tool.Name, "arguments": args}),
				ask(t, url, token, "tools/call", map[string]any{"name": tool.Name, "arguments": none[tool.Name][i]}))
		}
	}
}

// tryTransport tries to go on with, and to end, what another's client has begun.
func tryTransport(t *testing.T, url, aliceToken, bobToken string) {
	t.Helper()
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`
	resp, text := post(t, url, aliceToken, hello, nil)
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no Mcp-Session-Id: %d %s", resp.StatusCode, text)
	}
	forged := strings.Repeat("A", len(id))
	send := func(method, token, session, body string) string {
		resp, text := rig.Send(t, method, url, body, http.Header{"Authorization": {"Bearer " + token}, "Mcp-Session-Id": {session},
			"Mcp-Protocol-Version": {"2025-11-25"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}})
		return fmt.Sprintf("%d %s", resp.StatusCode, text)
	}
	for what, body := range map[string]string{
		"a ping":        `{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		"a call":        `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_sessions","arguments":{}}}`,
		"a cancel":      `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		"an answer":     `{"jsonrpc":"2.0","id":2,"result":{}}`,
		"initialized":   `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		"a long listen": "",
	} {
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		if others, none := send(method, bobToken, id, body), send(method, bobToken, forged, body); others != none || strings.HasPrefix(others, "2") {
			t.Errorf("%s in another's session: %s\nin none: %s", what, others, none)
		}
	}
	if others, none := send(http.MethodDelete, bobToken, id, ""), send(http.MethodDelete, bobToken, forged, ""); others != none {
		t.Errorf("to end another's session: %s\nnone: %s", others, none)
	}
	if got := send(http.MethodPost, aliceToken, id, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); !strings.HasPrefix(got, "200") {
		t.Errorf("alice's own session was ended by a stranger: %s", got)
	}
}

// tryPaths tries to reach another's files by the paths of one's own session.
func tryPaths(t *testing.T, s *rig.Server, bob *rig.Client) {
	t.Helper()
	python(t, bob, "bobs", "import os; os.symlink('/etc', 'etc'); os.symlink('..', 'up')")
	for _, path := range []string{
		"../secret.txt", "../../workspaces", "/etc/passwd", s.DataDir + "/cellblock.db", s.DataDir + "/audit.jsonl", "sub/../../x", "..", "a\x00b", "etc/passwd", "up/x",
	} {
		for _, tool := range []string{"read_file", "delete_file", "write_file", "execute_file", "list_files"} {
			args := map[string]any{"session_id": "bobs", "path": path}
			if tool == "write_file" {
				args["content"] = "x"
			}
			got, err := bob.Call(t.Context(), tool, args, nil)
			if err == nil && !got.IsError && !(tool == "list_files" && !strings.Contains(got.Text, "secret")) {
				t.Errorf("%s %q: %s", tool, path, got.Text)
			}
			if strings.Contains(got.Text, secret) {
				t.Errorf("%s %q: the secret is out", tool, path)
			}
		}
	}
}

// work has both owners run cells in sessions of the same name, until the returned function is called, which may be again.
func work(t *testing.T, clients ...*rig.Client) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for n, c := range clients {
		wg.Go(func() {
			mine := fmt.Sprintf("value-of-%d", n)
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				code := fmt.Sprintf("own = globals().get('own', %q); open('own.txt', 'w').write(own); print(own, open('own.txt').read(), %d)", mine, i)
				got, err := c.Call(t.Context(), "execute_python", map[string]any{"session_id": "both", "wait_seconds": 120, "code": code}, nil)
				if want := fmt.Sprintf("%s %s %d", mine, mine, i); err != nil || !strings.Contains(got.Text, want) {
					t.Errorf("owner %d, cell %d: %v %s", n, i, err, got.Text)
					return
				}
				if list, err := c.Call(t.Context(), "list_executions", map[string]any{"session_id": "both"}, nil); err != nil || strings.Contains(list.Text, fmt.Sprintf("value-of-%d", 1-n)) {
					t.Errorf("owner %d sees the other's cells: %v %s", n, err, list.Text)
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}
