package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/e2e/rig"
)

// getExecution reads how a cell goes on, or has ended.
func getExecution(t *testing.T, c *rig.Client, session string, number, wait int) rig.Result {
	t.Helper()
	return call(t, c, "get_execution", map[string]any{"session_id": session, "execution_id": number, "wait_seconds": wait})
}

// wholeOutput reads everything that a cell has shown.
func wholeOutput(t *testing.T, c *rig.Client, session string, number int) string {
	t.Helper()
	var r mcp.ReadResourceRequest
	r.Params.URI = fmt.Sprintf("cellblock://sessions/%s/executions/%d/output?limit=1000000", session, number)
	got, err := c.ReadResource(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, contents := range got.Contents {
		if text, ok := contents.(mcp.TextResourceContents); ok {
			return text.Text
		}
	}
	t.Fatalf("%s has no text", r.Params.URI)
	return ""
}

// begin starts a cell that nobody waits for.
func begin(t *testing.T, c *rig.Client, session, code string, args ...map[string]any) {
	t.Helper()
	all := map[string]any{"session_id": session, "code": code, "wait_seconds": 0}
	for _, more := range args {
		for name, value := range more {
			all[name] = value
		}
	}
	if r := call(t, c, "execute_python", all); r.IsError {
		t.Fatal(r.Text)
	}
}

const tenThousand = `import time
for i in range(10_000):
    print('line', i, flush=True)
    if i % 100 == 0: time.sleep(0.03)
y = 'set at the end'`

// A server is killed in the middle of a cell. The next one gives all that the cell has printed, once and in order, its true
// end, and the variables.
func TestKilledInTheMiddleOfACell(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		s := startIn(t, dir, runtime)
		token := s.Token(t)
		c := s.Connect(t, token, false)
		python(t, c, "long", "x = 41")
		begin(t, c, "long", tenThousand)
		begin(t, c, "long", "print('this waits')")
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "long", 2), "line 1500\n") })
		s.Kill(t)

		s = startIn(t, dir, runtime)
		c = s.Connect(t, token, false)
		r := getExecution(t, c, "long", 2, 60)
		wantText(t, r.Text, "line 9999", "cell 2 · ok")
		var want strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&want, "line %d\n", i)
		}
		if got := wholeOutput(t, c, "long", 2); !strings.HasPrefix(got, want.String()) || strings.Count(got, "line ") != 10_000 {
			t.Errorf("%d lines in %d characters, not the ten thousand in their order", strings.Count(got, "line "), len(got))
		}
		waited := getExecution(t, c, "long", 3, 0)
		wantText(t, waited.Text, "the server restarted before this cell ran")
		next := python(t, c, "long", "print(x + 1, y)")
		wantText(t, next.Text, "42 set at the end", "cell 4 · ok")
		if strings.Contains(next.Text, "lost") {
			t.Errorf("the next cell is told of a loss:\n%s", next.Text)
		}
	})
}

// A cell that runs when its server is killed can be interrupted by the next one, and ends at its time.
func TestCellsObeyTheNextServer(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		s := startIn(t, dir, runtime, noPool)
		token := s.Token(t)
		c := s.Connect(t, token, false)
		for _, session := range []string{"stopped", "overdue", "ended"} {
			python(t, c, session, "x = 1")
		}
		begin(t, c, "stopped", "import time; time.sleep(600)")
		begin(t, c, "overdue", "import time; time.sleep(600)", map[string]any{"timeout_seconds": 12})
		begun := time.Now()
		begin(t, c, "ended", "import time; print('begun', flush=True); time.sleep(1); print('in time')", map[string]any{"timeout_seconds": 2})
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "ended", 2), "begun") })
		s.Kill(t)
		time.Sleep(time.Until(begun.Add(3 * time.Second))) // in which a cell ends that nobody hears

		s = startIn(t, dir, runtime, noPool)
		c = s.Connect(t, token, false)
		if r := call(t, c, "interrupt_session", map[string]any{"session_id": "stopped"}); r.IsError {
			t.Error(r.Text)
		}
		wantText(t, getExecution(t, c, "stopped", 2, 30).Text, "KeyboardInterrupt", "Variables are kept")
		wantText(t, getExecution(t, c, "overdue", 2, 60).Text, "its timeout of 12", "Variables are kept")
		if took := time.Since(begun); took < 12*time.Second || took > time.Minute { // the machine may be busy
			t.Errorf("a cell with 12 seconds ended after %v", took)
		}
		wantText(t, getExecution(t, c, "ended", 2, 30).Text, "in time", "cell 2 · ok")
		for _, session := range []string{"stopped", "overdue", "ended"} {
			wantText(t, python(t, c, session, "print('x is', x)").Text, "x is 1")
		}
	})
}

// A kernel that dies while no server is there is told of with its cause; a container that is gone likewise.
func TestDeathWhileNoServerRuns(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		s := startIn(t, dir, runtime, noPool)
		token := s.Token(t)
		c := s.Connect(t, token, false)
		python(t, c, "idle", "import os, threading\nopen('kept.txt', 'w').write('kept')\n"+
			"threading.Timer(2, lambda: os.kill(os.getpid(), 9)).start()")
		begin(t, c, "busy", "import os, time\nprint('begun', flush=True)\ntime.sleep(2)\nos.kill(os.getpid(), 9)")
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "busy", 1), "begun") })
		s.Kill(t)
		time.Sleep(3 * time.Second) // both die

		s = startIn(t, dir, runtime, noPool)
		c = s.Connect(t, token, false)
		died := getExecution(t, c, "busy", 1, 30)
		wantText(t, died.Text, "begun", "SIGKILL")
		wantText(t, python(t, c, "busy", "print('on')").Text, "SIGKILL", "generation 2", "on")
		next := python(t, c, "idle", "print(open('kept.txt').read(), 'os' in globals())")
		wantText(t, next.Text, "SIGKILL", "generation 2", "kept False")
	})
}

// A rolling restart: the first server leaves at SIGTERM, says so, and the next one goes on with variables, the cell that
// runs, and the client, which calls all the while.
func TestRollingRestart(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		keep := []string{"--on-shutdown", "keep"}
		s := startIn(t, dir, runtime, keep...)
		addr := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/mcp")
		token := s.Token(t)
		c, old := s.Connect(t, token, false), s.ConnectAs(t, token, "2025-06-18") // which keeps an Mcp-Session-Id
		python(t, c, "rolled", "x = 41")
		minted := call(t, c, "execute_python", map[string]any{"code": "1"})
		wantText(t, minted.Text, "(new: pass this session_id")
		begin(t, c, "rolled", "import time\nfor i in range(8): print('step', i, flush=True); time.sleep(0.5)")
		left := time.Now()
		s.Stop(t)
		wantText(t, s.Log(), "kernels keep running for the next start", "kernels=1")

		s = startIn(t, dir, runtime, append(keep, "--addr", addr)...)
		if strings.Count(s.Log(), "stopped a kernel") != 0 {
			t.Errorf("a kernel was stopped:\n%s", s.Log())
		}
		r := getExecution(t, c, "rolled", 2, 30)
		if gap := time.Since(left); gap > 30*time.Second {
			t.Errorf("nothing could be called for %v", gap)
		}
		var steps []string
		for i := range 8 {
			steps = append(steps, fmt.Sprintf("step %d", i))
		}
		wantText(t, r.Text, strings.Join(steps, "\n"), "cell 2 · ok")
		next := python(t, old, "rolled", "print(x + 1)")
		wantText(t, next.Text, "42", "cell 3 · ok")
		s.Stop(t)
		startIn(t, dir, runtime).Stop(t) // and takes all kernels along
		if runtime != "local" {
			if left, err := containers(t, runtime, dir); err != nil || left != "" {
				t.Errorf("left: %s, %v", left, err)
			}
		}
	})
}

// Who calls while a server starts is not refused, once it listens.
func TestCallsDuringTheStartWait(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		s := startIn(t, dir, runtime, noPool)
		addr := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/mcp")
		c := s.Connect(t, s.Token(t), false)
		python(t, c, "waits", "x = 1")
		s.Kill(t)
		answered := make(chan rig.Result, 1)
		go func() {
			for {
				r, err := c.Call(t.Context(), "execute_python", map[string]any{"session_id": "waits", "wait_seconds": 120, "code": "print('x is', x)"}, nil)
				if err == nil || t.Context().Err() != nil {
					answered <- r
					return
				}
				time.Sleep(10 * time.Millisecond) // nobody listens yet
			}
		}()
		startIn(t, dir, runtime, noPool, "--addr", addr)
		select {
		case r := <-answered:
			wantText(t, r.Text, "x is 1", "cell 2 · ok")
		case <-time.After(time.Minute):
			t.Error("no answer")
		}
	})
}

// A kernel that no server comes back to ends by itself.
func TestUnattendedKernelEnds(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		config := dir + "/config.yaml"
		if err := os.WriteFile(config, []byte("sessions: {unattended: 3s}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := startIn(t, dir, runtime, noPool, "--config", config)
		c := s.Connect(t, s.Token(t), false)
		marker := newMarker()
		python(t, c, "alone", "import subprocess; p = subprocess.Popen(['sleep', '"+marker+"'])")
		time.Sleep(5 * time.Second) // longer than it goes on without a server, but there is one
		if r := python(t, c, "alone", "print(p.poll())"); !strings.Contains(r.Text, "None") {
			t.Fatalf("the kernel ended beside its server:\n%s", r.Text)
		}
		s.Kill(t)
		waitFor(t, func() bool { return !processRuns(marker) })
		s = startIn(t, dir, runtime, noPool)
		r := python(t, s.Connect(t, s.Token(t), false), "alone", "print('on')")
		wantText(t, r.Text, "ended", "generation 2", "on")
	})
}

// What a cell prints while no server is there, and does not fit into the journal, is counted in its place; its end is told.
// So is what background work prints.
func TestOutputWhileNoServerRuns(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		s := startIn(t, dir, runtime, noPool)
		token := s.Token(t)
		c := s.Connect(t, token, false)
		python(t, c, "late", `import threading, time
def later():
    for i in range(20):
        print('late', i, flush=True)
        time.sleep(0.2)
    open('printed', 'w').close()
threading.Thread(target=later).start()`)
		python(t, c, "flood", "import os, time")
		begin(t, c, "flood", `print('first', flush=True)
while not os.path.exists('go'): time.sleep(0.05)
for i in range(60_000): print(i, 'x' * 1000)
print('last')
open('printed', 'w').close()`)
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "flood", 2), "first") })
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "late", 1), "late 3") })
		folders, err := filepath.Glob(filepath.Join(dir, "workspaces", "*"))
		if err != nil {
			t.Fatal(err)
		}
		s.Kill(t)
		for _, folder := range folders { // one of them is the session's
			if info, err := os.Stat(folder); err == nil && info.IsDir() {
				if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		waitFor(t, func() bool { // both have printed what there is to print
			printed, err := filepath.Glob(filepath.Join(dir, "workspaces", "*", "printed"))
			return err == nil && len(printed) == 2
		})

		s = startIn(t, dir, runtime, noPool)
		c = s.Connect(t, token, false)
		r := getExecution(t, c, "flood", 2, 60)
		wantText(t, r.Text, "first", "left out here", "last", "cell 2 · ok")
		var late strings.Builder
		for i := range 20 {
			fmt.Fprintf(&late, "late %d\n", i)
		}
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "late", 1), "late 19") })
		if got := wholeOutput(t, c, "late", 1); strings.ReplaceAll(got, "\n\n", "\n") != late.String() && !strings.Contains(got, late.String()) {
			t.Errorf("of the background work there is\n%s", got)
		}
		wantText(t, python(t, c, "flood", "print(i)").Text, "59999")
	})
}
