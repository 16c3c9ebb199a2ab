package main

import (
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/mcpserver"
)

// What came live is not printed again with the result; everything else is.
func TestLiveOutputIsPrintedOnce(t *testing.T) {
	tests := map[string]struct {
		live   []string
		result string
		want   string
	}{
		"nothing live":          {nil, "a\nb", "a\nb\n"},
		"all live":              {[]string{"a\n", "b\n"}, "a\nb", "a\nb\n"},
		"no newline at the end": {[]string{"a", "b"}, "ab\n42", "ab\n42\n"},
		"a result after it":     {[]string{"a\n"}, "a\n42", "a\n42\n"},
		"standard error marked": {[]string{"a\n", "oops\n"}, "a\n[stderr]\noops\n1", "a\noops\n[stderr]\n1\n"},
		"a middle left out":     {[]string{"1\n2\n3\n4\n"}, "1\n… left out …\n4\nend", "1\n2\n3\n4\n… left out …\nend\n"},
		"lines of a kind":       {[]string{"x\nx\n"}, "x\nx\nx", "x\nx\nx\n"},
		"blanks at the end":     {[]string{"x \n"}, "x", "x \n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			l := &liveOutput{w: &out}
			for _, text := range tt.live {
				var n mcp.JSONRPCNotification
				n.Method = "notifications/progress"
				n.Params.Meta = map[string]any{mcpserver.OutputMeta: text}
				l.notification(n)
			}
			l.rest(tt.result)
			if out.String() != tt.want {
				t.Errorf("printed %q, want %q", out.String(), tt.want)
			}
		})
	}
}
