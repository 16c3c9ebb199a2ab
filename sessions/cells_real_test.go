//go:build linux

package sessions_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// begin starts a cell and returns when it has printed something.
func begin(t *testing.T, m *sessions.Manager, r sessions.Request) *sessions.Execution {
	t.Helper()
	e, err := m.Execute(t.Context(), owner, r)
	if err != nil {
		t.Fatal(err)
	}
	for range e.Outputs(t.Context()) {
		break
	}
	return e
}

// A flood of output grows nothing without bound, reaches its reader with head and tail, and the kernel is none the
// worse for it.
func TestRealFlood(t *testing.T) {
	const limit = 4 << 20
	m := newReal(t, func(c *sessions.Config) { c.RecordBytes, c.Store = limit, storetest.NewMemory() })
	run(t, m, cell("x = 7"))
	e, err := m.Execute(t.Context(), owner, cell("print('first')\nfor _ in range(2000): print('x' * 50_000)\nprint('last')"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Wait(t.Context()); err != nil || r.Status != kernels.StatusOK || r.Unsaved != nil {
		t.Fatalf("%+v %v", r, err)
	}
	if held := e.InMemory(); held > limit {
		t.Errorf("%d bytes are in memory", held)
	}
	var b strings.Builder
	told := false
	for out, err := range e.Outputs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		told = told || out.Notice != nil && out.Notice.Elided != nil
		b.WriteString(out.Text)
	}
	if got := b.String(); len(got) > 2*limit || !told || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n") {
		t.Errorf("%d bytes are kept, %.20q … %q, told: %v", len(got), got, got[max(0, len(got)-20):], told)
	}
	if got, r, _ := run(t, m, cell("x")); got != `"7"` {
		t.Errorf("afterwards: %q %+v", got, r)
	}
}

// logs is what was logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Whatever happens to a cell, its code and what it prints are in no log.
func TestRealLogsHoldNoCode(t *testing.T) {
	var l logs
	m := newReal(t, func(c *sessions.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	const secret = "hunter2"
	for _, code := range []string{
		"print('hunter2')", "raise ValueError('hunter2')", "hunter2 = 1; 1/0", "hunter2 = (", "import sys; print('hunter2', file=sys.stderr)",
		"import threading; threading.Timer(0.1, print, ['hunter2']).start()", "import time; time.sleep(0.3) # hunter2",
		"import os; print('hunter2', flush=True); os.kill(os.getpid(), 9)", "1 # hunter2",
	} {
		run(t, m, cell(code))
	}
	e := begin(t, m, cell("print('go', flush=True); import time; time.sleep(60) # hunter2"))
	e.Cancel()
	if _, err := e.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := m.Execute(t.Context(), owner, cell("hunter2\x00")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
	if err := m.Close(t.Context(), owner, "real", sessions.CloseOptions{}); err != nil {
		t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(l.b.String(), secret) || l.b.Len() == 0 {
		t.Errorf("%d bytes are logged:\n%s", l.b.Len(), l.b.String())
	}
}

// C code that looks for signals is interrupted; what does not is restarted, and the caller is told.
func TestRealCode(t *testing.T) {
	m := newReal(t)
	for _, tt := range []struct {
		name, code, rung string
		kept             bool
	}{
		{"regular expression", `import re; re.match(r"(a+)+$", "a" * 60 + "b")`, sessions.RungInterrupt, true},
		{"large number", `3 ** 100_000_000`, sessions.RungInterrupt, true},
		{"deaf", `sum(range(10 ** 15))`, sessions.RungRestart, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, m, cell("x = 7"))
			busy := cell(tt.code)
			busy.Timeout = time.Second
			_, r, _ := run(t, m, busy)
			if !r.TimedOut || r.Interrupt.Rung != tt.rung || r.Interrupt.VariablesKept != tt.kept {
				t.Errorf("%+v", r)
			}
			got, _, next := run(t, m, cell("print('x' in globals())"))
			if tt.kept && got != "True\n" || !tt.kept && (got != "False\n" || !strings.Contains(next.Preamble(), "All variables")) {
				t.Errorf("afterwards: %q, told %q", got, next.Preamble())
			}
		})
	}
}

// Calls on one session run in the order in which they came; another session does not wait for them.
func TestRealQueue(t *testing.T) {
	m := newReal(t)
	run(t, m, cell("order = []"))
	first := begin(t, m, cell("print('go', flush=True); import time; time.sleep(60)"))
	var queued []*sessions.Execution
	for i := range 8 {
		e, err := m.Execute(t.Context(), owner, cell(fmt.Sprintf("order.append(%d)", i)))
		if err != nil {
			t.Fatal(err)
		}
		queued = append(queued, e)
	}
	other := sessions.Request{SessionID: "other", Code: "print('mine')"}
	if got, _, _ := run(t, m, other); got != "mine\n" {
		t.Errorf("the other session says %q", got)
	}
	if phase, _ := first.Phase(); phase != sessions.PhaseRunning || queued[7].Position() != 8 {
		t.Errorf("meanwhile the first cell is %s, the last is behind %d", phase, queued[7].Position())
	}
	if _, err := m.Interrupt(t.Context(), owner, "real"); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := run(t, m, cell("print(order)")); got != "[0, 1, 2, 3, 4, 5, 6, 7]\n" {
		t.Errorf("they ran in the order %s", got)
	}
}

// Cancelled while it is queued, a cell never runs; cancelled while it runs, it is interrupted; and the next call
// works.
func TestRealCancel(t *testing.T) {
	m := newReal(t)
	run(t, m, cell("x = 7"))
	running := begin(t, m, cell("print('go', flush=True); import time; time.sleep(60)"))
	queued, err := m.Execute(t.Context(), owner, cell("x = 8; open('ran', 'w')"))
	if err != nil {
		t.Fatal(err)
	}
	queued.Cancel()
	if r, err := queued.Wait(t.Context()); fault.KindOf(err) != fault.Cancelled || !r.Cancelled {
		t.Errorf("in the queue: %+v %v", r, err)
	}
	running.Cancel()
	r, err := running.Wait(t.Context())
	if err != nil || !r.Cancelled || r.Error == nil || r.Error.Name != "KeyboardInterrupt" || !r.Interrupt.VariablesKept {
		t.Errorf("running: %+v %v", r, err)
	}
	if got, r, _ := run(t, m, cell("import os; print(x, os.path.exists('ran'))")); got != "7 False\n" || r.Status != kernels.StatusOK {
		t.Errorf("afterwards: %q %+v", got, r)
	}
}
