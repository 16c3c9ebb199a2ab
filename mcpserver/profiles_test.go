package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"cellblock/auth"
	"cellblock/mcpserver/transport"
)

// Tools offer the profiles that a token may use, and refuse the others, whether a call names one or its session has one.
func TestProfilesByScope(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		python := func(args map[string]any) called { return w.call("execute_python", args) }
		offered := func() string {
			_, raw := w.list()
			for _, tool := range raw {
				if strings.Contains(string(tool), `"name":"execute_python"`) {
					var l struct {
						InputSchema struct {
							Properties map[string]struct{ Enum []string }
						}
					}
					if err := json.Unmarshal(tool, &l); err != nil {
						t.Fatal(err)
					}
					return strings.Join(l.InputSchema.Properties["profile"].Enum, " ")
				}
			}
			return ""
		}
		if got := offered(); got != "isolated session" {
			t.Errorf("offered are %s", got)
		}
		w.scopes = append(w.scopes, "profile:development")
		if got := offered(); got != "development isolated session" {
			t.Errorf("with its scope offered are %s", got)
		}
		python(map[string]any{"code": "print hello", "session_id": "net", "profile": "development"}).expect(t, false, "hello")
		w.call("list_sessions", nil).expect(t, false, "net · python · idle · profile development")
		w.scopes = w.scopes[:len(w.scopes)-1]
		for name, got := range map[string]called{
			"a session that has it": python(map[string]any{"code": "print hello", "session_id": "net"}),
			"restoring one":         w.call("restore_session", map[string]any{"session_id": "net"}),
		} {
			if !got.isError || !strings.Contains(got.String(), "profile:development") {
				t.Errorf("%s: %s", name, got)
			}
		}
		python(map[string]any{"code": "error MemoryError none", "profile": "isolated"}).expect(t, true, "512 MiB")
		python(map[string]any{"code": "print hello", "session_id": "other", "profile": "isolated"}).expect(t, true, "leave session_id out")
		python(map[string]any{"code": "print hello", "profile": "isolated"}).expect(t, false, "hello", "(isolated: for this call only")
		python(map[string]any{"code": "print hello", "profile": "isolate"}).expect(t, true, `"isolate" is not one of`, "do you mean isolated?")
		python(map[string]any{"code": "print hello", "profile": 7}).expect(t, true, "profile: must be a string")
		python(map[string]any{"code": "print hello", "session_id": "s", "timeout_seconds": 7000}).expect(t, true, "3600")
	})
}

// What a call's arguments say of a profile is read as the tool reads it.
func TestAuthorizeLooksAtTheProfile(t *testing.T) {
	access := newWorld(t).service.access
	for arguments, want := range map[string]string{
		`{"profile":"development"}`:      "profile:development",
		`{"profile":"devel\u006fpment"}`: "profile:development",
		`{"profile":"session"}`:          "",
		`{"profile":"isolated"}`:         "",
		`{"Profile":"development"}`:      "", // the tool refuses it
		`{"profile":["development"]}`:    "",
		`{"profile":"nonsense"}`:         "",
		`[]`:                             "", `null`: "", ``: "", `7`: "",
	} {
		for tool, want := range map[string]string{"execute_python": want, "list_sessions": ""} {
			err := access.Authorize(transport.Call{Tool: tool, Arguments: json.RawMessage(arguments)}, func(scope string) bool { return !strings.HasPrefix(scope, "profile:") })
			if got := strings.Join(auth.ScopesIn(err), " "); got != want {
				t.Errorf("%s with %s needs %q", tool, arguments, got)
			}
		}
	}
	if got := strings.Join(access.ProfileScopes(), " "); got != "profile:development" {
		t.Errorf("scopes of profiles: %s", got)
	}
	for _, scope := range access.Scopes() {
		if strings.HasPrefix(scope, "profile:") {
			t.Errorf("%s is in the metadata", scope)
		}
	}
}
