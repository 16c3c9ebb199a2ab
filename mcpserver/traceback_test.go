package mcpserver

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

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
		{"one that says the same of a key", []string{head, lib, "KeyError: 'a key'", linked, head, user, "E: no 'a key' here"}, user + "\nE: no 'a key' here"},
		{"one that says nothing", []string{head, user, "E: "}, user + "\nE"},
		{"a script", []string{head, "Cell In[1], line 1\n----> 1 get_ipython().run_cell_magic('bash', '-s \\'a b\\'', \"set -e\\necho 'a'\\n\")", lib, "CalledProcessError: Command 'b\"set -e\\necho 'a'\\n\"' returned non-zero exit status 1."},
			"Cell In[1], line 1\n----> 1 %%bash -s \\'a b\\'\n" + lib + "\nCalledProcessError: Command '%%bash' returned non-zero exit status 1."},
		{"a command of the user's", []string{head, user, "CalledProcessError: Command 'b'ls x'' returned non-zero exit status 1."}, user + "\nCalledProcessError: Command 'b'ls x'' returned non-zero exit status 1."},
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

func TestOtherErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  kernels.ExecError
		want string
	}{
		{"nothing", kernels.ExecError{}, ""},
		{"name only", kernels.ExecError{Name: "KeyboardInterrupt"}, "KeyboardInterrupt"},
		{"no traceback", kernels.ExecError{Name: "E", Value: "what"}, "E: what"},
		{"another kernel's", kernels.ExecError{Name: "TypeError", Value: "x is not a function", Traceback: []string{
			"\x1b[31mTypeError: x is not a function\x1b[0m\n    at <anonymous>:1:1\n    at run (node:vm:1)"}},
			"TypeError: x is not a function\n    at <anonymous>:1:1\n    at run (node:vm:1)"},
		{"in one piece", kernels.ExecError{Name: "E", Traceback: []string{"Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nE: x"}},
			"  File \"x.py\", line 1, in f\nE: x"},
		{"says where it runs", kernels.ExecError{Name: "gaierror", Value: "[Errno -3] Temporary failure in name resolution"},
			"gaierror: [Errno -3] Temporary failure in name resolution\nHint: " + network{}.hint("")},
		{"a client's own error", kernels.ExecError{Name: "httpx.ConnectError", Value: "[Errno -2] Name or service not known"},
			"httpx.ConnectError: [Errno -2] Name or service not known\nHint: " + network{}.hint("")},
		{"a file of the user's machine", kernels.ExecError{Name: "FileNotFoundError", Value: "[Errno 2] No such file or directory: '/home/me/data.csv'"},
			"FileNotFoundError: [Errno 2] No such file or directory: '/home/me/data.csv'\nHint: " + filesHint("os.listdir()")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := dump(render(kernels.Output{Kind: kernels.OutputError, Error: &tt.err}))
			if tt.want != "" {
				tt.want = text(tt.want)
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Of exceptions in libraries of which each quotes the one before, one is told.
func TestQuotedErrorsAreToldOnce(t *testing.T) {
	const cause, led = "[Errno -3] Temporary failure in name resolution", "\nThe above exception was the direct cause of the following exception:\n"
	library := "File /usr/lib/python3/dist-packages/urllib3/x.py:3, in g()\n----> 3 g()"
	connection := "<connection at 0x7f>: Failed to resolve 'a.example' (" + cause + ")"
	pool := `Pool(host='a.example'): Max retries exceeded (Caused by NameResolutionError("` + connection + `"))`
	e := kernels.ExecError{Name: "ConnectionError", Value: pool, Traceback: []string{
		library, "gaierror: " + cause, led, library, "NameResolutionError: " + connection, led, library, "KeyError: 0", led,
		library, "MaxRetryError: " + pool, led, "Cell In[1], line 1\n----> 1 get()", library, "ConnectionError: " + pool}}
	want := "Cell In[1], line 1\n----> 1 get()\nFile /usr/lib/python3/dist-packages/urllib3/x.py:3, in g()\n----> 3 g()\nConnectionError: " + pool +
		"\nBefore that, inside a library: KeyError: 0"
	if got := errorText(e, 0); got != want {
		t.Errorf("%s", got)
	}
}

func TestDeepTracebackIsThinned(t *testing.T) {
	e := kernels.ExecError{Name: "E"}
	for i := range 1000 {
		e.Traceback = append(e.Traceback, fmt.Sprintf("Cell In[1], line %d, in f%d()\n----> %d f%d()", i, i, i, i+1))
	}
	e.Traceback = append(e.Traceback, "E: "+strings.Repeat("long ", 10_000))
	got := errorText(e, 0)
	for _, want := range []string{"line 0, in", "980 inner frames left out", "line 999, in", "E: long", "characters left out"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if n := len(got); n > 8000 {
		t.Errorf("%d bytes", n)
	}
}

// A kernel may send as many links as it likes, and each is compared with all that are kept.
func TestLongChainIsCutShort(t *testing.T) {
	e := kernels.ExecError{Name: "E", Value: "end"}
	for i := range 1000 {
		e.Traceback = append(e.Traceback, "File /usr/lib/python3/dist-packages/x.py:3, in g()\n----> 3 g()", fmt.Sprintf("KeyError: %03d", i),
			"\nThe above exception was the direct cause of the following exception:\n")
	}
	e.Traceback = append(e.Traceback, "Cell In[1], line 1\n----> 1 g()", "E: end")
	got := errorText(e, 0)
	if n := strings.Count(got, "Before that"); n != maxFrames || !strings.Contains(got, "E: end") {
		t.Errorf("%d causes are told, want %d:\n%s", n, maxFrames, got)
	}
}

// A line that quotes the data keeps its ends; a message of many lines stays whole.
func TestLongLineOfAnError(t *testing.T) {
	long := "Could not convert string '" + strings.Repeat("x", 4300) + "' to numeric"
	got := errorText(kernels.ExecError{Name: "TypeError", Value: long, Traceback: []string{"TypeError: " + long}}, 0)
	if len(got) > 700 || !strings.HasPrefix(got, "TypeError: Could not convert string 'xxx") || !strings.HasSuffix(got, "xxx' to numeric") {
		t.Errorf("%d: %s", len(got), got)
	}
	many := strings.TrimSpace(strings.Repeat("a line of it\n", 100))
	if got := errorText(kernels.ExecError{Name: "E", Value: many}, 0); !strings.Contains(got, many) {
		t.Error(got)
	}
}

// What is hardly too long is told whole: the line that says what is missing would be longer.
func TestHardlyTooLongIsNotCut(t *testing.T) {
	for more, cut := range map[int]bool{0: false, minLeftOut: false, minLeftOut + 1: true} {
		if got := cutMiddle(strings.Repeat("é", maxLine+more), maxLine); strings.Contains(got, "left out here") != cut {
			t.Errorf("%d more: %q", more, got)
		}
	}
}

func FuzzErrorText(f *testing.F) {
	f.Add("E", "v", "Cell In[1], line 2\n----> 2 x\n", "E: v")
	f.Add("SyntaxError", "v", "  Cell In[1], line 2\n    x = = 1\n        ^\nSyntaxError: v", "")
	f.Add("E", "", "File /usr/lib/python3/x.py:3, in f()\n", "    [... skipping similar frames: r at line 2 (2971 times)]")
	f.Fuzz(func(t *testing.T, name, value, a, b string) {
		got := errorText(kernels.ExecError{Name: name, Value: value, Traceback: []string{a, b, a, a, b}}, 3)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 4*maxMessage+200 {
			t.Errorf("%d bytes", len(got))
		}
	})
}
