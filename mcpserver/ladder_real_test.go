//go:build linux

package mcpserver

import (
	"context"
	"strings"
	"testing"
	"time"

	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

const (
	saidInterrupt = "An interrupt was enough. Variables are kept."
	saidChildren  = "It stopped when the processes that it had started were killed; variables are kept."
	saidRestart   = "The kernel was restarted because the cell did not stop when it was interrupted. Variables are lost, files are kept; " +
		"the next call runs on a new kernel."
)

// What does not stop by itself is stopped by the least that works, and the result says what that was and whether variables
// survived.
func TestRealLadder(t *testing.T) {
	w := newRealWorld(t, func(c *sessions.Config) { c.Grace = 2 * time.Second })
	for _, tt := range []struct{ name, code, said string }{
		{"sleep", "time.sleep(600)", saidInterrupt},
		{"a busy loop", "while True: pass", saidInterrupt},
		{"a NumPy call for minutes", "print('begun', flush=True)\nnp.linalg.svd(large)", saidRestart},
		{"NumPy calls in a loop", "while True: np.sort(np.random.rand(100_000))", saidInterrupt},
		{"a child process", "subprocess.run(['sleep', '600'])", saidInterrupt},
		{"a child that the kernel waits for deaf", `os.system("trap '' INT; sleep 600; true")`, saidChildren},
		{"a thread that ignores it", "def work():\n    while True:\n        try: time.sleep(0.1)\n        except BaseException: pass\n" +
			"t = threading.Thread(target=work, daemon=True)\nt.start()\nt.join()", saidInterrupt},
		{"a handler that swallows it", "while True:\n    try: time.sleep(600)\n    except KeyboardInterrupt: print('no')", saidRestart},
		{"a hung C call", "ctypes.CDLL(None).sleep(600)", saidInterrupt},
		{"a hung C call with signals blocked", "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nctypes.CDLL(None).sleep(600)", saidRestart},
		{"a C loop that holds the GIL", "import itertools\nmax(itertools.repeat(1))", saidRestart},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.run("ladder", "import ctypes, os, signal, subprocess, threading, time\nimport numpy as np\nkept, large = 'here', np.random.rand(3500, 3500)").expect(t, false)
			began := time.Now()
			got := w.execute("ladder", tt.code, map[string]any{"timeout_seconds": 2})
			t.Logf("%v\n%s", time.Since(began).Round(100*time.Millisecond), got)
			got.expect(t, true, "The cell was stopped because it ran longer than its timeout of 2.0 s. "+tt.said, "· timed out · ")
			if d := time.Since(began); d > 12*time.Second {
				t.Errorf("it took %v", d)
			}
			after := w.run("ladder", "globals().get('kept')")
			after.expect(t, false, "· ok ·")
			if survived := strings.Contains(after.String(), "'here'"); survived == (tt.said == saidRestart) {
				t.Errorf("afterwards: %s", after)
			}
		})
	}
}

// A cell that awaits ends with the same error as any other that is interrupted, and only because it is: what is cancelled by
// the code itself stays what it is.
func TestRealInterruptOfAwait(t *testing.T) {
	w := newRealWorld(t, func(c *sessions.Config) { c.Grace = 30 * time.Second })
	w.run("a", "import asyncio\nraise Exception").expect(t, true) // the first traceback takes a slow machine seconds
	for _, code := range []string{"await asyncio.sleep(600)", "await asyncio.gather(asyncio.sleep(600), asyncio.sleep(600))",
		"async def f(): await asyncio.wait_for(asyncio.sleep(600), 500)\nawait f()"} {
		got := w.execute("a", code, map[string]any{"timeout_seconds": 1})
		got.expect(t, true, "\nKeyboardInterrupt", saidInterrupt, "· timed out · ")
		if strings.Contains(got.String(), "CancelledError") {
			t.Errorf("got %s", got)
		}
	}
	for _, code := range []string{"t = asyncio.ensure_future(asyncio.sleep(600))\nt.cancel()\nawait t", "raise asyncio.CancelledError('mine')"} {
		w.run("a", code).expect(t, true, "CancelledError", "· error · ")
	}
}

// Who stops a cell by a restart of its kernel hears what that costs.
func TestLadderRemarkOfVariables(t *testing.T) {
	for want, report := range map[string]sessions.InterruptReport{
		"had to be restarted: variables are lost, files are kept.":                                                                 {Rung: sessions.RungRestart},
		"had to be restarted: of its variables those come back that had been saved (the next cell is told which), files are kept.": {Rung: sessions.RungRestart, VariablesSaved: true},
		"ended before it stopped: of its variables those come back that had been saved (the next cell is told which).":             {Rung: sessions.RungInterrupt, VariablesSaved: true},
	} {
		if said := ladderRemark(report); !strings.HasSuffix(said, want) {
			t.Errorf("%+v: %s", report, said)
		}
	}
}

// The ladder is the same for a cancelled call and for interrupt_session.
func TestRealCancelAndInterrupt(t *testing.T) {
	w := newRealWorld(t, func(c *sessions.Config) { c.Grace = 2 * time.Second })
	w.run("s", "import time\nkept = 'here'").expect(t, false)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(transport.ErrCancelled) })
	w.callWith(ctx, map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "print('a', flush=True)\ntime.sleep(600)"}}).expect(t, true)
	w.get("s", 2, nil).expect(t, true, "a\n", "KeyboardInterrupt", "because its call was cancelled. "+saidInterrupt, "cell 2 · cancelled · ")

	w.execute("s", "print('b', flush=True)\nwhile True:\n    try: time.sleep(600)\n    except KeyboardInterrupt: pass", map[string]any{"wait_seconds": 1}).expect(t, false, "b\n", "still running")
	w.call("interrupt_session", map[string]any{"session_id": "s"}).expect(t, false,
		"The running cell of session s was stopped. It ignored the interrupt, and its kernel had to be restarted: variables are lost, files are kept.")
	w.get("s", 3, nil).expect(t, true, "b\n", "The cell was stopped by interrupt_session. "+saidRestart)
	w.run("s", "'kept' in globals()").expect(t, false, "did not stop when it was interrupted", "False\n[session s · cell 4 · ok")
}
