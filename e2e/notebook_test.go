package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"cellblock/kernels/kernelstest"
	"cellblock/notebook"
)

// hasJupyter reports whether Debian's Jupyter packages are here. It takes a second of processor time.
var hasJupyter = sync.OnceValue(func() bool {
	return exec.Command("/usr/bin/python3", "-c", "import nbformat, nbconvert, nbclient, ipykernel").Run() == nil
})

// jupyter runs a module of Debian's Jupyter packages; it is skipped loudly where they are missing.
func jupyter(t *testing.T, args ...string) string {
	t.Helper()
	kernelstest.Need(t, hasJupyter(), "python3-nbformat or python3-nbconvert")
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// deterministic is a session that gives the same wherever it runs.
var deterministic = []string{
	"x = 20\nprint('printed', end='')\nprint(' in pieces')\nx + 1",
	"import sys\nfor i in range(2):\n    print('out', i, flush=True)\nprint('err', file=sys.stderr)",
	"from IPython.display import HTML, clear_output, display\nhandle = display('first', display_id='shown')\ndisplay(HTML('<b>bold</b>'), metadata={'isolated': True})",
	"print('cleared')\nclear_output()\nprint('left')\nhandle.update('second')",
	"{}['missing']",
	"print('on'); {'text': 'a < b', 'n': [1, 2]}",
}

// What a session has run is a valid notebook, and Jupyter that runs it again comes to the same results.
func TestNotebookExport(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "session.ipynb")
		s := startIn(t, dir, runtime, noPool)
		c := s.Connect(t, s.Token(t), false)
		for _, code := range deterministic {
			python(t, c, "book", code)
		}
		export := func(to string) *notebook.Notebook {
			t.Helper()
			out, code := cellblock(t, []string{"CELLBLOCK_URL=" + s.URL}, "", "--data-dir", dir, "notebook", "export", "book", "--force", "-o", to)
			if code != 0 {
				t.Fatalf("exit status %d\n%s", code, out)
			}
			return readBook(t, to)
		}
		mine := export(file)
		if len(mine.Cells) != len(deterministic) {
			t.Fatalf("%d cells", len(mine.Cells))
		}
		if got := mine.Cells[2].Outputs[0].Data["text/plain"]; got != "'second'" {
			t.Errorf("the display that was updated shows %v", got)
		}
		again := filepath.Join(filepath.Dir(file), "again.ipynb")
		jupyter(t, "-c", "import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=4))", file)
		jupyter(t, "-m", "nbconvert", "--execute", "--allow-errors", "--to", "notebook", "--output", again, file)
		theirs := readBook(t, again)
		for i := range mine.Cells {
			if got, want := essence(mine.Cells[i]), essence(theirs.Cells[i]); !reflect.DeepEqual(got, want) {
				t.Errorf("cell %d has\n%v\nJupyter comes to\n%v", i+1, got, want)
			}
		}

		// The history outlives session and server.
		if out, code := cellblock(t, []string{"CELLBLOCK_URL=" + s.URL}, "", "--data-dir", dir, "sessions", "rm", "book"); code != 0 {
			t.Fatal(out)
		}
		s.Stop(t)
		s = startIn(t, dir, runtime, noPool)
		if later := export(file); !reflect.DeepEqual(later.Cells, mine.Cells) {
			t.Errorf("after the end it is another notebook: %+v", later.Cells)
		}
	})
}

// essence is what two runs of a cell have in common.
func essence(c *notebook.Cell) []string {
	said := []string{fmt.Sprint(c.Source, c.ExecutionCount)}
	for _, o := range c.Outputs {
		line, _ := json.Marshal(o)
		if o.Type == notebook.Error {
			line = []byte(o.EName + o.EValue)
		}
		said = append(said, string(line))
	}
	return said
}

func readBook(t *testing.T, path string) *notebook.Notebook {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := notebook.Parse(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return n
}

// A notebook's code runs in a session, magics too, and stops where a cell fails; what is exported and imported is the same.
func TestNotebookImport(t *testing.T) {
	s := start(t, "local")
	env, folder := []string{"CELLBLOCK_URL=" + s.URL}, t.TempDir()
	run := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		return cellblockSplit(t, env, "", append([]string{"--data-dir", s.DataDir, "notebook"}, args...)...)
	}
	write := func(name string, cells ...*notebook.Cell) string {
		t.Helper()
		text, err := (&notebook.Notebook{Cells: cells, Metadata: notebook.Object{"kernelspec": notebook.Object{"name": "x", "language": "python"}}}).Text()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	code := func(source string, tags ...any) *notebook.Cell {
		return &notebook.Cell{Type: notebook.Code, Source: source, Metadata: notebook.Object{"tags": tags}}
	}

	magics := write("magics.ipynb", &notebook.Cell{Type: notebook.Markdown, Source: "print('text')"}, code("%%bash\necho from bash"), code("  \n"),
		code("!echo from a shell"), code("1/0", "raises-exception"), code("print('on')"))
	stdout, stderr, status := run("import", magics)
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	wantText(t, stdout, "from bash", "from a shell", "ZeroDivisionError", "on\n")
	wantText(t, stderr, "[1/4] %%bash …", "[4/4] print('on')", " has run 4 of the notebook's 4 code cells", "Session ")
	if strings.Contains(stdout, "text") {
		t.Error("a text was run")
	}

	fails := write("fails.ipynb", code("print('one')"), code("{}['missing']"), code("print('three')"))
	stdout, stderr, status = run("import", "--session", "stops", fails)
	if status != 1 || strings.Contains(stdout, "three") {
		t.Errorf("exit status %d, stdout %s", status, stdout)
	}
	wantText(t, stderr, "Session stops has run 2 of the notebook's 3 code cells", "--keep-going")
	stdout, _, status = run("import", "--session", "goes", "--keep-going", fails)
	if status != 1 || !strings.Contains(stdout, "three") {
		t.Errorf("--keep-going: exit status %d, stdout %s", status, stdout)
	}

	first, second := filepath.Join(folder, "first.ipynb"), filepath.Join(folder, "second.ipynb")
	run("export", "goes", "-o", first)
	_, stderr, status = run("export", "goes", "-o", first)
	wantText(t, stderr, "is there already", "--force")
	if status != 65 {
		t.Errorf("a file that is there: exit status %d", status)
	}
	run("import", "--session", "copy", "--keep-going", first)
	run("export", "copy", "-o", second)
	a, b := readBook(t, first), readBook(t, second)
	if len(a.Cells) != 3 || len(b.Cells) != 3 {
		t.Fatalf("%d cells, then %d", len(a.Cells), len(b.Cells))
	}
	for i := range a.Cells {
		if got, want := essence(b.Cells[i]), essence(a.Cells[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("cell %d was %v, then %v", i+1, want, got)
		}
	}

	old := filepath.Join(folder, "old.ipynb")
	if err := os.WriteFile(old, []byte(`{"nbformat": 3, "worksheets": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"nbformat 3":       {[]string{"import", old}, 2, "--nbformat 4"},
		"no file":          {[]string{"import", filepath.Join(folder, "none")}, 66, "no such file"},
		"no code":          {[]string{"import", write("empty.ipynb")}, 2, "no code"},
		"another language": {[]string{"import", "-l", "cobol", magics}, 2, "Use one of: python"},
		"no session":       {[]string{"export", "nobody"}, 66, "there is no session"},
		"no folder":        {[]string{"export", "goes", "-o", filepath.Join(folder, "none", "x")}, 69, "cannot be written"},
		"no such command":  {[]string{"exprot"}, 2, "Did you mean export?"},
	} {
		if _, stderr, status := run(tt.args...); status != tt.status || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit status %d\n%s", name, status, stderr)
		}
	}
}

// Sessions are listed, shown and ended from the command line.
func TestSessionsCommands(t *testing.T) {
	s := start(t, "local")
	env := []string{"CELLBLOCK_URL=" + s.URL}
	run := func(want int, args ...string) string {
		t.Helper()
		out, code := cellblock(t, env, "", append([]string{"--data-dir", s.DataDir}, args...)...)
		if code != want {
			t.Errorf("%v: exit status %d\n%s", args, code, out)
		}
		return out
	}
	wantText(t, run(0, "sessions", "ls"), "No sessions")
	run(0, "exec", "--session", "one", "print(1)")
	run(1, "exec", "--session", "one", "import os; os.kill(os.getpid(), 9)")
	run(0, "exec", "--session", "one", "print(2)")
	run(0, "exec", "--session", "two", "print(2)")

	wantText(t, run(0, "sessions", "ls"), "SESSION", "one", "two", "python", "idle", " s ago")
	var list struct {
		Sessions []struct {
			ID         string `json:"session_id"`
			Executions int    `json:"executions"`
		} `json:"sessions"`
	}
	if err := json.Unmarshal([]byte(run(0, "sessions", "ls", "--json")), &list); err != nil || len(list.Sessions) != 2 || list.Sessions[1].Executions != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	wantText(t, run(0, "sessions", "show", "one"), "CELL", "kernel died", "print(2)", "os.kill")
	if out := run(0, "sessions", "show", "one", "--limit", "1"); strings.Contains(out, "os.kill") {
		t.Error(out)
	}
	wantText(t, run(0, "logs", "one"), "one · python · idle · 3 cells", "generation 1 · started", "killed by SIGKILL", "generation 2 · started", "the kernel was started")

	wantText(t, run(66, "sessions", "rm", "nobody", "two"), "there is no session", "Session two is closed")
	wantText(t, run(0, "sessions", "rm", "two"), "Session two was closed already")
	if out := run(0, "sessions", "ls"); strings.Contains(out, "two") {
		t.Error(out)
	}
	wantText(t, run(0, "sessions", "ls", "--all"), "one", "two", "python     -         -       ended   1")
	wantText(t, run(0, "sessions", "show", "two"), "two · python · ended ", " ago: the session was closed · created ", "1      ok")
	wantText(t, run(0, "logs", "two"), "two · python · closed · 1 cell", "the session was closed")
	run(0, "sessions", "rm", "--delete-files", "one", "two")
	wantText(t, run(0, "sessions", "ls", "--all"), "No sessions")
	for _, args := range [][]string{{"sessions", "show", "two"}, {"logs", "two"}} {
		wantText(t, run(66, args...), "there is no session")
	}
	wantText(t, run(2, "sessions", "shows"), "Did you mean show?")
	wantText(t, run(2, "sessions", "show"), "--help")
}
