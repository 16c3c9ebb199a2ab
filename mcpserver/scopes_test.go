package mcpserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// everything is what there is to offer.
func everything(t *testing.T) *world {
	w := newWorld(t, func(c *sessions.Config) { c.Runtimes["javascript"] = sessions.Runtime{} })
	w.service.Toolsets = toolsets
	w.server = w.service.server()
	return w
}

// Every tool is in this table, so that none is added without somebody's thinking about who may use it.
func TestEveryToolHasAScope(t *testing.T) {
	w := everything(t)
	want := map[string]need{
		"execute_python": {scope: "python:execute"}, "execute_javascript": {scope: "javascript:execute"}, "list_sessions": {scope: "sessions:read"},
		"get_execution": {scope: "sessions:read", orLanguage: true}, "list_executions": {scope: "sessions:read"}, "inspect_variables": {scope: "sessions:read"},
		"list_files": {scope: "files:read"}, "read_file": {scope: "files:read"}, "execute_file": {scope: "files:read", andLanguage: true},
		"write_file": {scope: "files:write"}, "delete_file": {scope: "files:write"},
		"interrupt_session": {scope: "sessions:manage"}, "restart_session": {scope: "sessions:manage"}, "close_session": {scope: "sessions:manage"},
		"list_all_sessions": {scope: "sessions:admin"}, "stop_any_session": {scope: "sessions:admin"}, "forget_owner": {scope: "sessions:admin"}, "show_owner": {scope: "sessions:admin"},
		"restore_session": {andLanguage: true}, "health": {everybody: true},
		"create_image": {scope: "images:manage"}, "install_package": {scope: "images:manage"}, "list_images": {scope: "images:manage"}, "delete_image": {scope: "images:manage"},
	}
	if got := w.service.access.tools; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	listed, _ := w.list()
	if len(listed) == 0 {
		t.Fatal("nothing is listed")
	}
	for _, tool := range listed {
		if n, ok := want[tool.Name]; !ok || n == (need{}) {
			t.Errorf("%s has no scope", tool.Name)
		}
	}
	if got := strings.Join(w.service.access.Scopes(), " "); got != "files:read files:write images:manage javascript:execute python:execute sessions:manage sessions:read" {
		t.Errorf("scopes: %s", got)
	}
	for _, scope := range w.service.access.Scopes() {
		if !slices.Contains(auth.DevScopes(), scope) {
			t.Errorf("dev mode's token lacks %s", scope)
		}
	}
}

func TestToolsWithoutAScopeAreNotServed(t *testing.T) {
	for _, n := range []*need{nil, {}} {
		w := newWorld(t)
		kept := needs["health"]
		if delete(needs, "health"); n != nil {
			needs["health"] = *n
		}
		func() {
			defer func() {
				if needs["health"] = kept; recover() == nil {
					t.Errorf("with %v it is served", n)
				}
			}()
			w.service.server()
		}()
	}
}

func TestScopesDecideWhatIsListedAndCalled(t *testing.T) {
	for _, tt := range []struct {
		scopes []string
		listed []string
	}{
		{nil, []string{"health"}},
		{[]string{"python", "python:*", "*", ":execute", "python:execute ", "Python:execute", "cobol:execute"}, []string{"health"}},
		{[]string{"python:execute"}, []string{"execute_python", "get_execution", "health", "restore_session"}},
		{[]string{ScopeRead}, []string{"get_execution", "health", "inspect_variables", "list_executions", "list_sessions"}},
		{[]string{ScopeFilesRead}, []string{"health", "list_files", "read_file"}},
		{[]string{ScopeFilesRead, "python:execute"}, []string{"execute_file", "execute_python", "get_execution", "health", "list_files", "read_file", "restore_session"}},
		{[]string{ScopeFilesWrite}, []string{"delete_file", "health", "write_file"}},
		{[]string{ScopeManage}, []string{"close_session", "health", "interrupt_session", "restart_session"}},
	} {
		w := newWorld(t)
		w.scopes = tt.scopes
		var names []string
		tools, _ := w.list()
		for _, tool := range tools {
			names = append(names, tool.Name)
		}
		if slices.Sort(names); !slices.Equal(names, tt.listed) {
			t.Errorf("with %v: listed %v, want %v", tt.scopes, names, tt.listed)
		}
		for tool := range w.service.access.tools {
			got := w.call(tool, map[string]any{"wrong": true})
			missing := w.service.access.missing(tool, func(scope string) bool { return slices.Contains(tt.scopes, scope) })
			if refused := strings.Contains(got.String(), "which this token does not have"); refused == slices.Contains(names, tool) {
				t.Errorf("with %v: call of %s: %s", tt.scopes, tool, got)
			} else if refused {
				got.expect(t, true, tool+" needs the scope", `"`+strings.Join(missing, `" and "`)+`"`)
			}
		}
	}
}

// All that a call needs is named at once, so that a client asks its user once.
func TestAuthorizeNamesAllThatIsMissing(t *testing.T) {
	access := everything(t).service.access
	for _, tt := range []struct {
		call transport.Call
		has  string
		want string // the missing ones
	}{
		{transport.Call{Method: "tools/call", Tool: "execute_python"}, "", "python:execute"},
		{transport.Call{Method: "tools/call", Tool: "execute_python"}, "javascript:execute", "python:execute"},
		{transport.Call{Method: "tools/call", Tool: "execute_file"}, "", "files:read python:execute"},
		{transport.Call{Method: "tools/call", Tool: "execute_file"}, "python:execute", "files:read"},
		{transport.Call{Method: "tools/call", Tool: "health"}, "", ""},
		{transport.Call{Method: "tools/call", Tool: "execute_cobol"}, "", ""}, // there is none
		{transport.Call{Method: "tools/list"}, "", ""},
		{transport.Call{Method: "resources/read", URI: "cellblock://sessions/s/notebook.ipynb"}, "files:read", "sessions:read"},
		{transport.Call{Method: "resources/read", URI: "cellblock://sessions/s/files/a"}, "sessions:read", "files:read"},
		{transport.Call{Method: "resources/read", URI: "cellblock://sessions/files/files/a"}, "files:read", ""},
		{transport.Call{Method: "resources/read", URI: "cellblock://sessions/files/log"}, "files:read", "sessions:read"},
		{transport.Call{Method: "resources/read", URI: "cellblock://sessions/s/executions/1/output?offset=/files/"}, "files:read", "sessions:read"},
		{transport.Call{Method: "resources/read", URI: "nonsense"}, "", "sessions:read"},
	} {
		err := access.Authorize(tt.call, func(scope string) bool { return scope == tt.has })
		if got := strings.Join(auth.ScopesIn(err), " "); got != tt.want || (err != nil) != (got != "") || err != nil && fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%v with %q: %v", tt.call, tt.has, err)
		}
	}
}

// Resources are in lists, and can be read, with their scope alone.
func TestEveryResourceHasAScope(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a")
		w.call("write_file", map[string]any{"session_id": "s", "path": "a.txt", "content": "b"}).expect(t, false)
		all := []string{"python:execute", ScopeManage, ScopeFilesWrite}
		addresses := map[string]string{ // by template, with those that lists hold
			"cellblock://sessions/{session_id}/executions/{execution_id}/output{?offset,limit}": "cellblock://sessions/s/executions/1/output",
			"cellblock://sessions/{session_id}/executions/{execution_id}/outputs/{index}":       "cellblock://sessions/s/executions/1/outputs/0",
			"cellblock://sessions/{session_id}/notebook.ipynb":                                  "cellblock://sessions/s/notebook.ipynb",
			"cellblock://sessions/{session_id}/log":                                             "cellblock://sessions/s/log",
			"cellblock://sessions/{session_id}/files/{+path}{?offset}":                          "cellblock://sessions/s/files/a.txt",
		}
		for _, scope := range []string{"", ScopeRead, ScopeFilesRead} {
			w.scopes = append(slices.Clone(all), scope)
			templates, resources := w.offered("resources/templates/list"), w.offered("resources/list")
			for template, uri := range addresses {
				mine := scope == resourceScope(uri)
				if resourceScope(template) != resourceScope(uri) || slices.Contains(templates, template) != mine {
					t.Errorf("with %q: listed are %v", scope, templates)
				}
				if _, err := w.read(uri); (err == nil) != mine || err != nil && !strings.Contains(err.Message, `needs the scope "`+resourceScope(uri)+`"`) {
					t.Errorf("with %q: %s: %v", scope, uri, err)
				}
			}
			for _, uri := range resources {
				if scope != resourceScope(uri) {
					t.Errorf("with %q: %s is listed", scope, uri)
				}
			}
			if (len(resources) == 0) != (scope == "") || scope == "" && len(templates) > 0 {
				t.Errorf("with %q: %v, %v", scope, templates, resources)
			}
		}
		w.scopes = []string{ScopeRead, ScopeFilesRead}
		if got := w.offered("resources/templates/list"); len(got) != len(addresses) {
			t.Errorf("templates that this test does not know: %v", got)
		}
	})
}

// offered returns the addresses in a list.
func (w *world) offered(method string) (addresses []string) {
	w.t.Helper()
	raw, rpcError := w.request(w.t.Context(), method, nil)
	if rpcError != nil {
		w.t.Fatalf("%s: %s", method, rpcError.Message)
	}
	var list struct {
		Resources         []struct{ URI string }
		ResourceTemplates []struct{ URITemplate string }
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range list.Resources {
		addresses = append(addresses, r.URI)
	}
	for _, r := range list.ResourceTemplates {
		addresses = append(addresses, r.URITemplate)
	}
	return addresses
}
