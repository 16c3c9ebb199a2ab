package e2e

import (
	"bytes"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/e2e/rig"
)

// The main job: variables, files and plots stay from call to call; an error is a result; the session goes on.
func TestSessionKeepsState(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)

		if r := python(t, c, "analysis", "x = 41"); r.IsError {
			t.Fatal(r.Text)
		}
		r := python(t, c, "analysis", "print('to stdout'); import sys; print('to stderr', file=sys.stderr)\nx + 1")
		wantText(t, r.Text, "to stdout", "to stderr", "42", "analysis")
		if r.IsError {
			t.Error("stderr made the result an error")
		}

		r = python(t, c, "analysis", "def f():\n    return 1 / 0\nf()")
		wantText(t, r.Text, "ZeroDivisionError", "division by zero", "return 1 / 0")
		if !r.IsError || strings.Contains(r.Text, "\x1b") {
			t.Errorf("isError %t, text:\n%s", r.IsError, r.Text)
		}

		r = python(t, c, "analysis", "def broken(:\n  pass")
		wantText(t, r.Text, "SyntaxError")
		if !r.IsError {
			t.Error("a syntax error is no error")
		}

		r = python(t, c, "analysis", "open('kept.txt', 'w').write('kept'); x")
		wantText(t, r.Text, "41")
		if r := python(t, c, "other", "x"); !r.IsError {
			t.Errorf("another session sees x:\n%s", r.Text)
		}
	})
}

// What the workers of a cell print is its output, and not that of the cell in which they end, minutes later. The host's own Python
// writes as it does anywhere.
func TestWorkersPrintInTheirCell(t *testing.T) {
	onRuntimes(t, slices.DeleteFunc(rig.Runtimes(t), func(name string) bool { return name != "docker" }), func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)
		r := python(t, c, "workers", `import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", "import sys\nprint('from a worker')\nprint('ready', file=sys.stderr)\nsys.stdin.read()"],
    stdin=subprocess.PIPE, stderr=subprocess.PIPE)
worker.stderr.read(1); None`)
		wantText(t, r.Text, "from a worker")
	})
}

// Several plots in one cell are several images, in order, at their place in the text.
func TestPlotsAreImages(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)
		r := python(t, c, "plots", `import matplotlib.pyplot as plt
for i in range(2):
    print("before plot", i)
    plt.figure(figsize=(4 + i, 3))
    plt.plot([1, 2, 3])
    plt.show()
print("after")`)
		wantText(t, r.Text, "before plot 0", "before plot 1", "after")
		if len(r.Images) != 2 {
			t.Fatalf("%d images:\n%s", len(r.Images), r.Text)
		}
		var widths []int
		for _, img := range r.Images {
			p, err := png.Decode(bytes.NewReader(img))
			if err != nil {
				t.Fatal(err)
			}
			widths = append(widths, p.Bounds().Dx())
		}
		if widths[0] >= widths[1] {
			t.Errorf("the plots are out of order: widths %v", widths)
		}
	})
}

// A kernel that dies in its first cell gives a clear result at once; the next call works, with the files kept.
func TestKernelDeath(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		s := startIn(t, t.TempDir(), runtime)
		c := s.Connect(t, s.Token(t), false)
		r := python(t, c, "fragile", "open('notes.txt', 'w').write('still here')\nimport os; os.kill(os.getpid(), 9)")
		wantText(t, r.Text, "SIGKILL")
		if !r.IsError {
			t.Error("a death is no error")
		}
		r = python(t, c, "fragile", "print(open('notes.txt').read())")
		wantText(t, r.Text, "still here", "variables")
		if r.IsError {
			t.Errorf("the next call failed:\n%s", r.Text)
		}
		if r := python(t, c, "fragile", "1 + 1"); strings.Contains(r.Text, "SIGKILL") {
			t.Errorf("the death is told twice:\n%s", r.Text)
		}
	})
}

// A cell that runs too long is stopped, and the result says what became of the variables.
func TestTimeoutInterrupts(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)
		python(t, c, "slow", "x = 1")
		r := call(t, c, "execute_python", map[string]any{
			"code": "print('begun', flush=True)\nimport time; time.sleep(600)", "session_id": "slow", "timeout_seconds": 1,
		})
		wantText(t, r.Text, "begun", "timeout", "Variables are kept")
		if !r.IsError {
			t.Error("a time-out is no error")
		}
		if r := python(t, c, "slow", "x"); r.IsError {
			t.Errorf("x is lost:\n%s", r.Text)
		}
	})
}

// Tools that work on sessions: list, interrupt, restart, close.
func TestSessionTools(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)
		python(t, c, "one", "x = 1; open('f.txt', 'w').write('file')")
		wantText(t, call(t, c, "list_sessions", nil).Text, "one", "python", "idle")

		var running sync.WaitGroup
		running.Add(1)
		go func() {
			defer running.Done()
			r, err := c.Call(t.Context(), "execute_python", map[string]any{
				"code": "import time\nfor i in range(600): time.sleep(1)", "session_id": "one", "wait_seconds": 120,
			}, nil)
			if err != nil || !r.IsError || !strings.Contains(r.Text, "KeyboardInterrupt") {
				t.Errorf("the interrupted cell: %v\n%s", err, r.Text)
			}
		}()
		waitFor(t, func() bool { return strings.Contains(call(t, c, "list_sessions", nil).Text, "busy") })
		if r := call(t, c, "interrupt_session", map[string]any{"session_id": "one"}); r.IsError {
			t.Error(r.Text)
		}
		running.Wait()
		wantText(t, python(t, c, "one", "print('x is', x)").Text, "x is 1")

		if r := call(t, c, "restart_session", map[string]any{"session_id": "one"}); r.IsError {
			t.Error(r.Text)
		}
		r := python(t, c, "one", "print(open('f.txt').read(), 'x' in globals())")
		wantText(t, r.Text, "file False")

		if r := call(t, c, "close_session", map[string]any{"session_id": "one"}); r.IsError {
			t.Error(r.Text)
		}
		if text := call(t, c, "list_sessions", nil).Text; strings.Contains(text, "idle") {
			t.Errorf("still listed:\n%s", text)
		}
	})
}

// waitFor asks again until something is so; for what nothing can tell a test.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	const patience = 90 * time.Second
	for deadline := time.Now().Add(patience); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("it did not become so within %v", patience)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Calls on one session queue in order; calls on different sessions do not wait for each other.
func TestConcurrentCalls(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := startIn(t, t.TempDir(), runtime)
		c := s.Connect(t, s.Token(t), false)
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				session := fmt.Sprintf("s%d", i%3)
				r, err := c.Call(t.Context(), "execute_python", map[string]any{
					"code": fmt.Sprintf("seen = globals().get('seen', 0) + 1; print('call %d')", i), "session_id": session, "wait_seconds": 120,
				}, nil)
				if err != nil || r.IsError || !strings.Contains(r.Text, fmt.Sprintf("call %d", i)) {
					t.Errorf("call %d: %v %s", i, err, r.Text)
				}
			}()
		}
		wg.Wait()
		for i := range 3 {
			wantText(t, python(t, c, fmt.Sprintf("s%d", i), "print('seen', seen)").Text, "seen 4")
		}
	})
}
