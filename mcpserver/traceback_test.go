package mcpserver

import (
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
)

func TestTracebackSaysTheSessionsNumbers(t *testing.T) {
	for _, tt := range []struct {
		name, element, want string
		shift               int
	}{
		{"as the kernel says", "Cell In[6], line 1\n----> 1 x", "Cell In[6], line 1\n----> 1 x", 0},
		{"after a restart", "Cell In[1], line 1\n----> 1 x", "Cell In[27], line 1\n----> 1 x", 26},
		{"with a space", "Cell In [1], line 2, in f()\n----> 2 x", "Cell In [27], line 2, in f()\n----> 2 x", 26},
		{"input", "Input In [3], in <cell line: 1>()\n----> 1 x", "Input In [5], in <cell line: 1>()\n----> 1 x", 2},
		{"a file's name", "File <ipython-input-6-abc>:1, in f()\n----> 1 x", "File <ipython-input-7-abc>:1, in f()\n----> 1 x", 1},
		{"the kernel is ahead", "Cell In[6], line 1\n----> 1 x", "Cell In[4], line 1\n----> 1 x", -2},
		{"no cell of the session", "Cell In[2], line 1\n----> 1 x", "Cell In[2], line 1\n----> 1 x", -2},
		{"the user's text", "Cell In[1], line 1\n----> 1 x = 'Cell In[1], line 1'", "Cell In[3], line 1\n----> 1 x = 'Cell In[1], line 1'", 2},
		{"a syntax error", "  Cell In[1], line 1\n    x = = 1\n        ^", "Cell In[3], line 1\n    x = = 1\n        ^", 2},
		{"another file", "File /workspace/m.py:1, in f()\n----> 1 x", "File /workspace/m.py:1, in f()\n----> 1 x", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := errorText(kernels.ExecError{Name: "E", Traceback: []string{tt.element, "E: Cell In[1], line 1"}}, tt.shift)
			if want := tt.want + "\nE: Cell In[1], line 1"; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestShift(t *testing.T) {
	for _, tt := range []struct{ number, count, want int }{{27, 1, 26}, {3, 3, 0}, {3, 0, 0}, {3, -1, 0}, {2, 4, -2}} {
		if got := shiftOf(tt.number, sessions.Result{Result: kernels.Result{ExecutionCount: tt.count}}); got != tt.want {
			t.Errorf("cell %d, which the kernel calls %d: %d, not %d", tt.number, tt.count, got, tt.want)
		}
	}
}

func TestTracebackBeginsWithTheUsersFrame(t *testing.T) {
	const (
		user   = "Cell In[1], line 1\n----> 1 f()"
		lib    = "File /usr/lib/python3/dist-packages/x.py:3, in g()\n----> 3 h()"
		linked = "\nThe above exception was the direct cause of the following exception:\n"
		head   = "E                Traceback (most recent call last)"
	)

	for _, tt := range []struct {
		name string
		in   []string
		want string
	}{
		{"a cause inside a library", []string{head, lib, lib, "K: a", linked, head, user, lib, lib, "E: b"},
			user + "\n  … 1 inner frame left out …\n" + lib + "\nE: b\nBefore that, inside a library: K: a"},
		{"one that says the same", []string{head, lib, "E: b", linked, head, user, "E: b"}, user + "\nE: b"},
		{"the user's own cause", []string{head, user, lib, "K: a", linked, head, user, "E: b"},
			user + "\n" + lib + "\nK: a\nThe above exception was the direct cause of the following exception:\n" + user + "\nE: b"},
		{"only a library", []string{head, lib, lib, "E: b"}, "  … 1 inner frame left out …\n" + lib + "\nE: b"},
		{"what called the user", []string{head, lib, user, "E: b"}, user + "\nE: b"},
		{"the kernel's own program", []string{head, user, "File <string>:323, in line_of_input(*args, **options)", "E: b"}, user + "\nE: b"},
		{"the same, as a newer Python names it", []string{head, user, "File <string>:3, in ask.<locals>.asking.<locals>.line_of_input(*args)", "E: b"}, user + "\nE: b"},
		{"the user's exec", []string{head, user, "File <string>:1", "File <string>:2, in f()", "E: b"}, user + "\nFile <string>:1\nFile <string>:2, in f()\nE: b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := errorText(kernels.ExecError{Name: "E", Traceback: tt.in}, 0); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestNodesTraceback(t *testing.T) {
	got := errorText(kernels.ExecError{Name: "TypeError", Value: "no", Traceback: []string{
		"Cell In[2], line 1\n----> 1 f()", "File /workspace/node_modules/a/index.js:3, in f\n----> 3 g()", "File /workspace/node_modules/a/index.js:9, in g\n----> 9 h()",
		"File node:fs:448, in readFileSync", "TypeError: no",
	}}, 0)
	if want := "Cell In[2], line 1\n----> 1 f()\n  … 2 inner frames left out …\nFile node:fs:448, in readFileSync\nTypeError: no"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
