package e2e

import (
	"strings"
	"testing"
)

// Bad input: each a clear error that names the field and the rule, and nothing is started for it.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := start(t, "auto")
	c := s.Connect(t, s.Token(t), false)
	tests := map[string]struct {
		args map[string]any
		want []string
	}{
		"missing code":         {map[string]any{"session_id": "a"}, []string{"code"}},
		"empty code":           {map[string]any{"code": " \n"}, []string{"code", "empty"}},
		"code of another type": {map[string]any{"code": 42}, []string{"code", "string"}},
		"NUL in code":          {map[string]any{"code": "print(1)\x00"}, []string{"code", "NUL"}},
		"10 MB of code":        {map[string]any{"code": strings.Repeat("x = 1\n", 10<<20/6)}, []string{"code", "1 M"}},
		"slash in session_id":  {map[string]any{"code": "1", "session_id": "a/b"}, []string{"session_id", "A-Z"}},
		"dots as session_id":   {map[string]any{"code": "1", "session_id": ".."}, []string{"session_id"}},
		"long session_id":      {map[string]any{"code": "1", "session_id": strings.Repeat("a", 300)}, []string{"session_id", "64"}},
		"negative timeout":     {map[string]any{"code": "1", "timeout_seconds": -1}, []string{"timeout_seconds"}},
		"huge timeout":         {map[string]any{"code": "1", "timeout_seconds": 1e9}, []string{"timeout_seconds", "3600"}},
		"unknown argument":     {map[string]any{"code": "1", "sesion_id": "a"}, []string{"sesion_id", "session_id"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := c.Call(t.Context(), "execute_python", tt.args, nil)
			if err != nil {
				t.Fatalf("a protocol error: %v", err)
			}
			if !r.IsError {
				t.Errorf("no error:\n%s", r.Text)
			}
			wantText(t, r.Text, tt.want...)
		})
	}
	if _, err := c.Call(t.Context(), "execute_cobol", map[string]any{"code": "1"}, nil); err == nil {
		t.Error("an unknown tool gave no protocol error")
	}
	if text := call(t, c, "list_sessions", nil).Text; strings.Contains(text, "idle") || strings.Contains(text, "starting") {
		t.Errorf("bad input started a session:\n%s", text)
	}
}
