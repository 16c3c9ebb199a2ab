package mcpserver

import (
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
)

func TestPrintedHint(t *testing.T) {
	const pip = "WARNING: Retrying … Temporary failure in name resolution\nERROR: No matching distribution found for humanize"
	for _, tt := range []struct {
		name   string
		said   []string
		failed *kernels.ExecError
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"all is well", []string{"42", "resolved"}, nil, ""},
		{"pip", []string{pip}, nil, hintInstall},
		{"pip on Debian", []string{"[stderr]\nerror: externally-managed-environment\n\n× This"}, nil, hintInstall},
		{"no pip", []string{"/usr/bin/python3: No module named pip\nNote: you may need to restart the kernel to use updated packages."}, nil, hintInstall},
		{"no pip in the shell", []string{"/usr/bin/sh: 1: pip: not found"}, nil, hintInstall},
		{"pip after curl", []string{"curl: (6) Could not resolve host: example.com", pip}, nil, hintInstall},
		{"curl", []string{"before", "curl: (6) Could not resolve host: example.com", "after"}, nil, hintNetwork},
		{"a program that is checked", []string{pip}, &kernels.ExecError{Name: "CalledProcessError"}, hintInstall},
		{"cp", []string{"cp: error writing 'b': Disk quota exceeded"}, nil, "The workspace may hold 10 GiB: delete files that are not needed."},
		{"an error that has a hint", []string{pip}, &kernels.ExecError{Name: "ModuleNotFoundError", Value: "No module named 'humanize'"}, ""},
	} {
		var outputs []mcp.Content
		for _, text := range tt.said {
			outputs = append(outputs, mcp.NewTextContent(text))
		}
		if got := printedHint(outputs, tt.failed, bounds{workspace: 10 << 30}); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// What Node says of what is not there.
func TestHintOfNode(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"Cannot find package 'lodash' imported from /workspace/", "lodash is not installed"},
		{"Cannot find module '@scope/name'\nRequire stack:\n- /workspace/cell.js", "@scope/name is not installed"},
		{"Cannot find module './mine.js'\nRequire stack:\n- /workspace/cell.js", ""},
		{"Cannot find module '/workspace/mine.mjs' imported from /workspace/", ""},
		{"ENOENT: no such file or directory, open 'a.csv'", "fs.readdirSync"},
		{"EROFS: read-only file system, open '/usr/a'", "Only the working directory"},
		{"getaddrinfo ENOTFOUND example.com", "no network"},
	} {
		got := errorHint(kernels.ExecError{Name: "Error", Value: tt.value}, bounds{})
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.value, got)
		}
	}
}

// A cell in which a command failed says so once, before its last line, although nothing was raised.
func TestHintOfAPrintedFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		got := w.run("s", "print ERROR: No matching distribution found for humanize")
		got.expect(t, false, "humanize\nHint: "+hintInstall+"\n[session s · cell 1 · ok")
		if strings.Count(got.String(), "Hint: ") != 1 {
			t.Error(got)
		}
		if got := w.run("s", "print fine"); strings.Contains(got.String(), "Hint") {
			t.Error(got)
		}
	})
}
