package mcpserver

import (
	"encoding/json"
	"testing"
)

// Programs get an error's kind beside its words.
func TestErrorsSayTheirKind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		kindOf := func(tool string, args map[string]any) string {
			t.Helper()
			raw, rpcError := w.request(t.Context(), "tools/call", map[string]any{"name": tool, "arguments": args})
			if rpcError != nil {
				t.Fatal(rpcError)
			}
			var result struct {
				Meta map[string]struct{ Kind string } `json:"_meta"`
			}
			if err := json.Unmarshal(raw, &result); err != nil {
				t.Fatal(err)
			}
			return result.Meta[ErrorMeta].Kind
		}
		if got := kindOf("list_executions", map[string]any{"session_id": "nobody"}); got != "not_found" {
			t.Errorf("a session that is not there: %q", got)
		}
		if got := kindOf("list_executions", map[string]any{"session_id": 7}); got != "invalid" {
			t.Errorf("a wrong argument: %q", got)
		}
		if got := kindOf("list_sessions", nil); got != "" {
			t.Errorf("no error: %q", got)
		}
		w.scopes = []string{"python:execute"}
		if got := kindOf("list_sessions", nil); got != "forbidden" {
			t.Errorf("a missing scope: %q", got)
		}
	})
}
