//go:build linux

package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/local"
	"cellblock/sessions"
)

// newRealWorld is a world whose kernels are the host's Python in real sandboxes.
func newRealWorld(t *testing.T, change ...func(*sessions.Config)) *world {
	t.Helper()
	kernelstest.NeedPython(t)
	dir := kernelstest.ShortDir(t)
	p, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), ShimPath: kernelstest.BuildShim(t),
	})
	kernelstest.Need(t, err == nil, fmt.Sprintf("the local provisioner (%v)", err))
	err = p.Health(t.Context())
	kernelstest.Need(t, err == nil, fmt.Sprintf("a sandbox (%v)", err))
	w := newWorld(t, func(c *sessions.Config) {
		c.Provisioner, c.DataDir = p, filepath.Join(dir, "data")
		c.Runtimes = map[string]sessions.Runtime{"python": {Kernelspec: kernelstest.Python, Variables: images.Python(images.PythonInterpreter).Variables,
			RunFile: images.Python(images.PythonInterpreter).RunFile}}
		c.Profiles = map[string]sessions.Profile{sessions.DefaultProfile: {Limits: kernels.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 128, Tmp: 64 << 20}}}
		c.Logger = slog.New(slog.DiscardHandler)
		for _, f := range change {
			f(c)
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.service.Sessions.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		_ = p.Close()
	})
	return w
}

// A short analysis as a model does it, with what it must get to see: plots at their place, stderr that is no error (item 7).
func TestRealAnalysis(t *testing.T) {
	w := newRealWorld(t)
	for _, step := range []struct {
		code    string
		isError bool
		words   []string
	}{
		{"import numpy as np, pandas as pd\nimport matplotlib.pyplot as plt\ndf = pd.DataFrame({'x': np.arange(5), 'y': np.arange(5) ** 2})\ndf.describe()",
			false, []string{"count  5.000000   5.000000", "cell 1 · ok"}},
		{"print('before')\nplt.plot(df.x, df.y); plt.show()\nprint('between')\nplt.bar(df.x, df.y); plt.show()\nprint('after')",
			false, []string{"before\n(image/png)\nbetween\n(image/png)\nafter\n[session demo · cell 2 · ok"}},
		{"df['z']", true, []string{"----> 1 df['z']", "inner frame", "KeyError: 'z'", "· error ·"}},
		{"import sys, time\nfor i in range(101):\n    sys.stderr.write(f'\\r{i}%')\nprint(len(df))", false, []string{"[stderr] 100%", "5\n"}},
		{"import requests_that_is_not_there", true, []string{"Hint: requests_that_is_not_there is not installed"}},
		{"import urllib.request; urllib.request.urlopen('http://example.com')", true, []string{"URLError", "Hint: The kernel has no network"}},
		{"!pip install something-that-is-not-there", false, []string{"Hint: Nothing can be installed"}},
		{"pd.read_csv('/home/me/data.csv')", true, []string{"FileNotFoundError", "Hint: The kernel sees the files of its session"}},
		{"np.ones(10**12)", true, []string{"MemoryError", "Hint: The kernel may use 1 GiB"}},
		{"for i in range(200000): print('line', i)", false, []string{"line 0\n", "left out here", "line 199999"}},
		{"x = = 1", true, []string{"x = = 1", "^", "SyntaxError"}},
		{"open('/etc/x', 'w')", true, []string{"open('/etc/x', 'w')"}},
		{"from IPython.display import display, HTML, clear_output, update_display\ndisplay('old', display_id='d'); print('gone'); clear_output()\n" +
			"h = display(HTML('<h2>Title</h2><ul><li>one</ul>'), display_id='e'); update_display(HTML('<p>new <b>text</b></p>'), display_id='e')",
			false, []string{"new text\n[session demo"}},
		{"import os; os.kill(os.getpid(), 9)", true, []string{"killed by SIGKILL", "kernel died"}},
		{"'df' in globals()", false, []string{"Note: The kernel of session", "False"}},
	} {
		began := time.Now()
		got := w.run("demo", step.code)
		got.expect(t, step.isError, step.words...)
		t.Logf("%v\n>>> %s\n%.900s", time.Since(began).Round(time.Millisecond), strings.ReplaceAll(step.code, "\n", "\n... "), got)
	}
}

// sys.exit() ends the cell alone, and nobody is advised to call what would end the kernel.
func TestRealExitStatus(t *testing.T) {
	w := newRealWorld(t)
	w.run("demo", "x = 1").expect(t, false)
	got := w.run("demo", "import sys; sys.exit(3)")
	got.expect(t, true, "SystemExit: 3")
	if text := fmt.Sprint(got); strings.Contains(text, "To exit") {
		t.Error(text)
	}
	w.run("demo", "x").expect(t, false, "1")
}
