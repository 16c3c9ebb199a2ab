package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

func TestCode(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file := filepath.Join(t.TempDir(), "x.py")
	if err := os.WriteFile(file, []byte("in the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		file  string
		args  []string
		stdin io.Reader
		want  string
		kind  fault.Kind // Internal: no error
	}{
		{"an argument", "", []string{"1"}, strings.NewReader("2"), "1", 0},
		{"a dash", "", []string{"-"}, strings.NewReader("2"), "2", 0},
		{"a pipe", "", nil, strings.NewReader("2"), "2", 0},
		{"a file", file, nil, strings.NewReader("2"), "in the file", 0},
		{"a byte order mark", "", nil, strings.NewReader("\ufeffprint('é')"), "print('é')", 0},
		{"another encoding", "", nil, strings.NewReader("print('caf\xe9')"), "", fault.Invalid},
		{"an empty pipe", "", nil, strings.NewReader(""), "", fault.Invalid},
		{"a terminal", "", nil, null, "", fault.Invalid},
		{"both", file, []string{"1"}, null, "", fault.Invalid},
		{"no file", file + "x", nil, null, "", fault.NotFound},
	} {
		got, err := execOptions{file: tt.file}.code(tt.args, tt.stdin)
		if got != tt.want || (err != nil) != (tt.kind != 0) || err != nil && fault.KindOf(err) != tt.kind {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// What came live is not printed again with the result; everything else is.
func TestLiveOutputIsPrintedOnce(t *testing.T) {
	tests := map[string]struct {
		live   []string
		result []string
		want   string
	}{
		"nothing live":           {nil, []string{"a\nb"}, "a\nb\n"},
		"all live":               {[]string{"a\n", "b\n"}, []string{"a\nb"}, "a\nb\n"},
		"no newline at the end":  {[]string{"a", "b"}, []string{"ab\n42"}, "ab\n42\n"},
		"a result after it":      {[]string{"a\n"}, []string{"a\n42"}, "a\n42\n"},
		"standard error between": {[]string{"a\n"}, []string{"a", "[stderr]\noops\nmore", "1"}, "a\n[stderr]\noops\nmore\n1\n"},
		"a middle left out": {[]string{"1\n2\n3\n4\n"}, []string{"1\n… 4 characters (2 lines) left out here …\n4\nend"},
			"1\n2\n3\n4\n… 4 characters (2 lines) left out here …\nend\n"},
		"standard error that says the same": {[]string{"a\nb\n", "c\n"}, []string{"a", "[stderr]\nb\nd", "b\nc\n7"},
			"a\nb\nc\n[stderr]\nb\nd\n7\n"},
		"a line of it":             {[]string{"a\n", "b\n"}, []string{"a", "[stderr] b", "b"}, "a\nb\n[stderr] b\n"},
		"blank lines between":      {[]string{"a\n\n\nb\n"}, []string{"a", "[stderr] x", "b"}, "a\n\n\nb\n[stderr] x\n"},
		"a mark of the cell's own": {[]string{"[stderr] mine\nb\n"}, []string{"[stderr] mine\nb"}, "[stderr] mine\nb\n"},
		"many turns in a block": {[]string{"a\nb\n", "c\nd\ne\n"}, []string{"[stderr] x\na\n[stderr] y\nb\n[stderr]\nc\nz\n[stdout] c\n[stderr]\nd\nz\n[stdout]\nd\ne\n7"},
			"a\nb\nc\nd\ne\n[stderr] x\n[stderr] y\n[stderr]\nc\nz\n[stderr]\nd\nz\n7\n"},
		"a later line first": {[]string{"a\nb\n"}, []string{"b", "a\nb"}, "a\nb\nb\n"},
		"lines of a kind":    {[]string{"x\nx\n"}, []string{"x\nx\nx"}, "x\nx\nx\n"},
		"blanks at the end":  {[]string{"x \n"}, []string{"x"}, "x \n"},
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
			for _, block := range tt.result {
				l.rest(block)
			}
			if out.String() != tt.want {
				t.Errorf("printed %q, want %q", out.String(), tt.want)
			}
		})
	}
}
