package notebook

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

// python runs a script with Debian's Jupyter packages.
func python(t *testing.T, script string, args ...string) string {
	t.Helper()
	const interpreter = "/usr/bin/python3"
	kernelstest.Need(t, exec.Command(interpreter, "-c", "import nbformat").Run() == nil, "python3-nbformat")
	out, err := exec.CommandContext(t.Context(), interpreter, append([]string{"-c", script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// Jupyter takes every notebook that is written here, whatever a kernel sent, by its own validator.
func TestNbformatTakesIt(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, n *Notebook) {
		text, err := n.Text()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".ipynb"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("everything", everything())
	write("empty", NewBuilder(Session{ID: "s"}).Notebook())
	for seed := range uint64(50) {
		write(fmt.Sprint(seed), anyNotebook(rand.New(rand.NewPCG(seed, 3))))
	}
	said := python(t, `
import glob, sys, nbformat
for path in sorted(glob.glob(sys.argv[1] + "/*.ipynb")):
    text = open(path, encoding="utf8", newline="").read()
    try:
        nb = nbformat.reads(text, as_version=4)
        nbformat.validate(nb)
        again = nbformat.writes(nb)
        nbformat.validate(nbformat.reads(again, as_version=4))
        print("ok", nb.nbformat, nb.nbformat_minor)
    except Exception as e:
        print(path, repr(e)[:600])
`, dir)
	for line := range strings.Lines(said) {
		if line != "ok 4 5\n" {
			t.Error(line)
		}
	}
	if n := strings.Count(said, "\n"); n != 52 {
		t.Errorf("%d notebooks were validated\n%s", n, said)
	}
}

// everything is a notebook of all that a kernel may send, and of what none should.
func everything() *Notebook {
	b := NewBuilder(Session{
		ID: "s", Kernelspec: kernels.Kernelspec{Name: "python3", DisplayName: "Python 3", Language: "python"}, Generation: 2, Ended: "it was closed",
	})
	b.NewKernel(1, "")
	b.Begin(Run{Number: 1, Generation: 1, Code: "x = 1\nx", ExecutionCount: 1, Status: "ok", Caller: "test", Started: time.Now(), Duration: time.Second})
	for _, out := range []kernels.Output{
		text("stdout", "a\nb"), text("stderr", "\x1b[31mred\x1b[0m\xff"), text("", ""), show(kernels.OutputResult, "x", "1"), show(kernels.OutputUpdate, "x", "2"),
		{Kind: kernels.OutputDisplay, Metadata: json.RawMessage(`null`), Data: map[string]json.RawMessage{
			"image/png": json.RawMessage(`"AAAA"`), "text/plain": json.RawMessage(`{"a": 1}`), "": json.RawMessage(`1`), "x": json.RawMessage(`null`),
			"application/vnd.plotly.v1+json": json.RawMessage(`{"data": [1e400, "\ud800"]}`), "text/latex": json.RawMessage(`"\udc00"`)}},
		{Kind: kernels.OutputDisplay}, {Kind: kernels.OutputResult, ExecutionCount: -1},
		{Kind: kernels.OutputError, Error: &kernels.ExecError{Name: "E", Value: "v"}}, {Kind: kernels.OutputError, Error: &kernels.ExecError{}},
		{Kind: kernels.OutputNotice, Notice: &kernels.Notice{Incomplete: "the end was not seen"}},
	} {
		b.Output(out)
	}
	b.NewKernel(2, "the kernel was killed by SIGKILL")
	b.Begin(Run{Number: 2, Generation: 2, Status: "kernel died", Failure: "the kernel was killed"})
	return b.Notebook()
}
