package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/sessions"
)

type listedTool struct {
	Name, Title, Description string
	InputSchema              struct {
		Properties           map[string]struct{ Description string }
		AdditionalProperties any
	}
	Annotations map[string]any
}

func (w *world) list() (tools []listedTool, raw []json.RawMessage) {
	w.t.Helper()
	result, rpcError := w.request(w.t.Context(), "tools/list", map[string]any{})
	var r struct{ Tools []json.RawMessage }
	if rpcError != nil || json.Unmarshal(result, &r) != nil {
		w.t.Fatal(rpcError)
	}
	for _, tool := range r.Tools {
		var l listedTool
		if err := json.Unmarshal(tool, &l); err != nil {
			w.t.Fatal(err)
		}
		tools = append(tools, l)
	}
	return tools, r.Tools
}

func TestToolSchemas(t *testing.T) {
	w := newWorld(t)
	w.service.Toolsets = toolsets
	w.server = w.service.server()
	tools, raw := w.list()
	for i, tool := range tools {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, raw[i], "", "  "); err != nil {
			t.Fatal(err)
		}
		golden(t, "tools/"+tool.Name+".json", pretty.String()+"\n")
		if tool.Title == "" || tool.Description == "" || tool.InputSchema.AdditionalProperties != false {
			t.Errorf("%s: title, description or additionalProperties missing", tool.Name)
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := tool.Annotations[hint].(bool); !ok {
				t.Errorf("%s: no %s", tool.Name, hint)
			}
		}
		for name, p := range tool.InputSchema.Properties {
			if p.Description == "" {
				t.Errorf("%s: argument %s has no description", tool.Name, name)
			}
		}
	}
}

// Every model reads the list with every call.
func TestToolListIsShort(t *testing.T) {
	for _, tt := range []struct {
		sets []string
		most int
	}{{nil, 2500}, {toolsets, 4000}, {[]string{ToolsetExecute}, 1000}} {
		w := newWorld(t)
		w.service.Toolsets, w.scopes = tt.sets, append(w.scopes, "profile:development")
		w.server = w.service.server()
		result, _ := w.request(t.Context(), "tools/list", map[string]any{})
		t.Logf("tools/list of %v: %d tokens", tt.sets, len(result)/4)
		if len(result)/4 > tt.most {
			t.Errorf("tools/list of %v is %d tokens", tt.sets, len(result)/4)
		}
	}
}

func TestToolSaysHowLongAMintedSessionLives(t *testing.T) {
	for idle, want := range map[time.Duration]string{0: "after 5 minutes", time.Hour: "after 1 hour", 90 * time.Second: "after 90 seconds"} {
		tools, _ := newWorld(t, func(c *sessions.Config) { c.MintedIdle = idle }).list()
		for _, tool := range tools {
			if said := tool.InputSchema.Properties["session_id"].Description; tool.Name == "execute_python" && !strings.Contains(said, want) {
				t.Errorf("%v: %s", idle, said)
			}
		}
	}
}

func TestToolsets(t *testing.T) {
	for _, tt := range []struct {
		sets []string
		want string
	}{
		{nil, "close_session delete_file execute_file execute_python get_execution health inspect_variables interrupt_session list_executions list_files list_sessions read_file restart_session restore_session write_file"},
		{[]string{}, "health"},
		{[]string{ToolsetExecute}, "execute_python get_execution health interrupt_session"},
		{[]string{ToolsetSessions, ToolsetFiles, ToolsetImages}, "close_session create_image delete_file delete_image execute_file health inspect_variables install_package list_executions list_files list_images list_sessions read_file restart_session restore_session write_file"},
	} {
		w := newWorld(t)
		w.service.Toolsets = tt.sets
		w.server = w.service.server()
		var names []string
		tools, _ := w.list()
		for _, tool := range tools {
			names = append(names, tool.Name)
		}
		if slices.Sort(names); strings.Join(names, " ") != tt.want {
			t.Errorf("%v: %v", tt.sets, names)
		}
	}
	if err := CheckToolsets([]string{"execute", "notebooks"}); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Text(err), "execute, sessions, files, images") {
		t.Errorf("%v", err)
	}
	if err := CheckToolsets(toolsets); err != nil {
		t.Error(err)
	}
}

func TestUnknownToolIsAProtocolError(t *testing.T) {
	w := newWorld(t)
	_, rpcError := w.request(t.Context(), "tools/call", map[string]any{"name": "execute_cobol", "arguments": map[string]any{}})
	if rpcError == nil || rpcError.Code != -32602 || !strings.Contains(rpcError.Message, "execute_cobol") {
		t.Errorf("got %+v", rpcError)
	}
}

func TestBadArguments(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		name, tool, args string
		words            []string
	}{
		{"no code", "execute_python", `{}`, []string{"code: is required"}},
		{"a misspelt one", "execute_python", `{"cod":"1"}`, []string{"cod: there is no such argument, do you mean code?; code: is required"}},
		{"null code", "execute_python", `{"code":null}`, []string{"code: is required"}},
		{"empty code", "execute_python", `{"code":""}`, []string{"code: is empty"}},
		{"code of another type", "execute_python", `{"code":["x"]}`, []string{"code: must be a string, got an array"}},
		{"code with NUL", "execute_python", `{"code":"a\u0000"}`, []string{"code: contains a NUL"}},
		{"10 MB of code", "execute_python", `{"code":"` + strings.Repeat("x", 10<<20) + `"}`, []string{"code: 10485760 bytes, at most 1048576"}},
		{"session_id with a slash", "execute_python", `{"code":"x","session_id":"a/b"}`, []string{"session_id", "A-Z a-z 0-9"}},
		{"session_id of 300 characters", "execute_python", `{"code":"x","session_id":"` + strings.Repeat("x", 300) + `"}`, []string{"session_id", "300 characters"}},
		{"dots", "execute_python", `{"code":"x","session_id":".."}`, []string{"session_id"}},
		{"empty session_id", "execute_python", `{"code":"x","session_id":""}`, []string{"session_id: is empty"}},
		{"number as session_id", "execute_python", `{"code":"x","session_id":7}`, []string{"session_id: must be a string, got a number"}},
		{"timeout as another text", "execute_python", `{"code":"x","timeout_seconds":"30s"}`, []string{"timeout_seconds: must be a number, got a string"}},
		{"timeout as a text that is null", "execute_python", `{"code":"x","timeout_seconds":"null"}`, []string{"timeout_seconds: must be a number, got a string"}},
		{"timeout 0", "execute_python", `{"code":"x","timeout_seconds":0}`, []string{"timeout_seconds: must be between 1 and 3600, got 0"}},
		{"timeout too long", "execute_python", `{"code":"x","timeout_seconds":3601}`, []string{"timeout_seconds: must be between 1 and 3600, got 3601"}},
		{"misspelt", "execute_python", `{"code":"x","timeout":3}`, []string{"timeout: there is no such argument, do you mean timeout_seconds?"}},
		{"misspelt otherwise", "execute_python", `{"code":"x","sesion_id":"a"}`, []string{"sesion_id", "do you mean session_id?"}},
		{"camel case", "execute_python", `{"code":"x","sessionId":"a"}`, []string{"sessionId", "do you mean session_id?"}},
		{"strange", "execute_python", `{"code":"x","quux\u001b[31m":"a"}`, []string{"quux: there is no such argument, this tool takes code, session_id, timeout_seconds, wait_seconds"}},
		{"an array", "execute_python", `[1]`, []string{"arguments: must be an object, got an array"}},
		{"argument of a tool without any", "health", `{"x":1}`, []string{"takes none"}},
		{"argument of a tool without any", "list_sessions", `{"x":1}`, []string{"takes none"}},
		{"no session_id", "close_session", `{}`, []string{"session_id: is required"}},
		{"flag as text", "close_session", `{"session_id":"x","delete_files":"yes"}`, []string{"delete_files: must be true or false, got a string"}},
		{"no such session", "close_session", `{"session_id":"x"}`, []string{`there is no session "x"`, "list_sessions"}},
		{"no such session", "interrupt_session", `{"session_id":"x"}`, []string{`there is no session "x"`, "list_sessions"}},
		{"no such session", "restart_session", `{"session_id":"x"}`, []string{`there is no session "x"`, "list_sessions"}},
		{"id with a slash", "restart_session", `{"session_id":"../x"}`, []string{"session_id"}},
	} {
		t.Run(tt.tool+" "+tt.name, func(t *testing.T) {
			got := w.callWith(t.Context(), map[string]any{"name": tt.tool, "arguments": json.RawMessage(tt.args)})
			got.expect(t, true, tt.words...)
			if len(got.String()) > 400 {
				t.Errorf("an error of %d bytes", len(got.String()))
			}
		})
	}
	if n := len(w.kernels.Launched()); n != 0 {
		t.Errorf("%d kernels were launched", n)
	}
}

// Some models write numbers, true and false as texts. What they mean is plain, and an error would cost them a call.
func TestArgumentsInQuotes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.call("execute_python", map[string]any{"session_id": "s", "code": "print a", "timeout_seconds": "30", "wait_seconds": "2.5"}).expect(t, false, "a\n")
		w.call("get_execution", map[string]any{"session_id": "s", "execution_id": "1", "wait_seconds": "0"}).expect(t, false, "a\n")
		w.call("close_session", map[string]any{"session_id": "s", "delete_files": "true"}).expect(t, false, "deleted")
	})
}

func TestNoArgumentsAtAll(t *testing.T) {
	w := newWorld(t)
	w.callWith(t.Context(), map[string]any{"name": "list_sessions"}).expect(t, false, "No sessions")
	w.callWith(t.Context(), map[string]any{"name": "execute_python"}).expect(t, true, "code: is required")
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"code":"x"}`, `{"code":1}`, `[]`, `null`, `{"cod":"x"}`, `{"timeout_seconds":1e999}`, `{"timeout_seconds":-0}`, `{"code":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		var r mcp.CallToolRequest
		if json.Unmarshal([]byte(`{"params":{"name":"x","arguments":`+string(raw)+`}}`), &r) != nil {
			return
		}
		a := argumentsOf(r, "code", "session_id", "timeout_seconds")
		code, d := a.required("code"), a.seconds("timeout_seconds", time.Hour)
		a.flag("session_id")
		if d != 0 && (d < time.Second || d > time.Hour) {
			t.Errorf("timeout %v", d)
		}
		if a.err == nil && !utf8.ValidString(code) {
			t.Errorf("code %q", code)
		}
		if a.err != nil && len(a.err.Error()) > 500 {
			t.Errorf("an error of %d bytes", len(a.err.Error()))
		}
	})
}

// manyLanguages is a world with all languages that we have images for.
func manyLanguages(t *testing.T) *world {
	return newWorld(t, func(c *sessions.Config) {
		for _, l := range images.AllOurs() {
			if l.Name != "python" {
				c.Runtimes[l.Name] = sessions.Runtime{Title: images.Title(l.Name), Note: strings.Repeat("A note. ", 15)}
			}
		}
	})
}

// The tools of more languages are there by themselves, and cost a model little: what they have in common is said once.
func TestToolsOfMoreLanguages(t *testing.T) {
	w := manyLanguages(t)
	w.scopes = append(w.scopes, "csharp:execute", "r:execute", "javascript:execute", "typescript:execute", "bash:execute")
	w.service.Toolsets = toolsets
	w.server = w.service.server()
	tools, raw := w.list()
	said := map[string]listedTool{}
	size := 0
	for i, tool := range tools {
		said[tool.Name] = tool
		size += len(raw[i])
		if strings.HasPrefix(tool.Name, "execute_") && tool.Name != "execute_python" && tool.Name != "execute_file" {
			if len(raw[i])/4 > 250 {
				t.Errorf("%s is %d tokens", tool.Name, len(raw[i])/4)
			}
			for name := range said["execute_python"].InputSchema.Properties {
				if _, ok := tool.InputSchema.Properties[name]; !ok {
					t.Errorf("%s has no %s", tool.Name, name)
				}
			}
		}
	}
	if size/4 > 4000 {
		t.Errorf("%d tokens", size/4)
	}
	if d := said["execute_csharp"]; d.Title != "Run C#" || !strings.Contains(d.Description, "C# code") || !strings.Contains(d.Description, "A note.") {
		t.Errorf("%+v", d)
	}
	if d := said["execute_python"].Description; !strings.Contains(d, "variables, imports and files stay") {
		t.Errorf("%s", d)
	}
	golden(t, "tools/execute_csharp.json", func() string {
		i := slices.IndexFunc(tools, func(l listedTool) bool { return l.Name == "execute_csharp" })
		var pretty bytes.Buffer
		_ = json.Indent(&pretty, raw[i], "", "  ") // what was read before
		return pretty.String() + "\n"
	}())
}

// Without Python, another language is explained at length.
func TestToolsWithoutPython(t *testing.T) {
	w := newWorld(t, func(c *sessions.Config) { c.Runtimes = map[string]sessions.Runtime{"r": {}, "bash": {}} })
	w.scopes = append(w.scopes, "r:execute", "bash:execute")
	tools, _ := w.list()
	for _, tool := range tools {
		if long := strings.Contains(tool.Description, "variables, imports and files stay"); strings.HasPrefix(tool.Name, "execute_") && long != (tool.Name == "execute_bash") {
			t.Errorf("%s: %s", tool.Name, tool.Description)
		}
	}
}

func TestAnotherLanguageOnASession(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.service.Sessions.Config().Runtimes["r"] = sessions.Runtime{}
		w.run("s", "print x").expect(t, false, "x")
		w.scopes = append(w.scopes, "r:execute")
		w.service.Languages = []string{"python", "r"}
		w.server = w.service.server()
		w.call("execute_r", map[string]any{"session_id": "s", "code": "x"}).expect(t, true, `session "s" is a python session, it cannot run r`, "execute_python")
	})
}
