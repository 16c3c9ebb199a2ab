package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// execute is execute_python with more arguments than a code.
func (w *world) execute(session, code string, more map[string]any) called {
	w.t.Helper()
	args := map[string]any{"session_id": session, "code": code}
	for name, value := range more {
		args[name] = value
	}
	return w.call("execute_python", args)
}

// get is get_execution.
func (w *world) get(session string, execution any, more map[string]any) called {
	w.t.Helper()
	args := map[string]any{"session_id": session, "execution_id": execution}
	for name, value := range more {
		args[name] = value
	}
	return w.call("get_execution", args)
}

func TestWaitIsOverAndTheCellGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		began := time.Now()
		got := w.run("s", "print a\nsleep 70s\nprint b\nresult 7")
		got.expect(t, false, "a\n[session s · cell 1 · still running, 25 s so far; read on with "+
			`get_execution(session_id="s", execution_id=1, since=1)]`)
		if time.Since(began) != quietWait {
			t.Errorf("it took %v", time.Since(began))
		}
		w.get("s", 1, map[string]any{"since": 1}).expect(t, false, "[session s · cell 1 · still running, 50 s so far")
		got = w.get("s", "1", map[string]any{"since": 1})
		if want := "b\n7\n[session s · cell 1 · ok · 70 s]"; got.String() != want || got.isError {
			t.Errorf("the rest: %s", got)
		}
		for range 2 { // as often as asked
			if got, want := w.get("s", 1, nil), "a\nb\n7\n[session s · cell 1 · ok · 70 s]"; got.String() != want {
				t.Errorf("the whole: %s", got)
			}
		}
		w.run("s", "1+1").expect(t, false, "2\n[session s · cell 2 · ok")
	})
}

// Who does not wait gets the result of a cell that has ended, always.
func TestNoWaitForACellThatHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a")
		for range 32 {
			w.get("s", 1, map[string]any{"wait_seconds": 0}).expect(t, false, "a\n[session s · cell 1 · ok")
		}
	})
}

func TestWaitIsLongerForAClientThatHears(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		began := time.Now()
		w.callWith(t.Context(), map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "sleep 50s"},
			"_meta": map[string]any{"progressToken": 1}}).expect(t, false, "still running, 45 s so far")
		if time.Since(began) != patientWait {
			t.Errorf("it took %v", time.Since(began))
		}
		w.execute("s", "print x", map[string]any{"wait_seconds": 2}).expect(t, false,
			`[session s · cell 2 · waiting for 1 cell before it in the session; read on with get_execution(session_id="s", execution_id=2)]`)
		w.get("s", 2, map[string]any{"wait_seconds": 60}).expect(t, false, "x\n[session s · cell 2 · ok")
	})
}

func TestWaitZeroBelongsToNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kernels.LaunchDelay = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		w.callWith(ctx, map[string]any{"name": "execute_python", "arguments": map[string]any{
			"session_id": "s", "code": "sleep 30s\nprint done", "wait_seconds": 0}}).
			expect(t, false, "cell 1 · waiting for the kernel, which is starting; read on with get_execution(")
		cancel()
		w.get("s", 1, map[string]any{"wait_seconds": 0}).expect(t, false, "cell 1 · ")
		w.get("s", 1, map[string]any{"wait_seconds": 40}).expect(t, false, "done\n[session s · cell 1 · ok · 30 s]")
	})
}

// A cell that waits for its kernel is not said to be none.
func TestInterruptOfAWaitingCell(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kernels.LaunchDelay = time.Second
		w.execute("s", "print done", map[string]any{"wait_seconds": 0})
		w.call("interrupt_session", map[string]any{"session_id": "s"}).expect(t, false,
			"Session s was not running anything; 1 waiting cell will run when the kernel is ready, and can be interrupted then.")
		w.get("s", 1, map[string]any{"wait_seconds": 40}).expect(t, false, "done\n[session s · cell 1 · ok")
		w.call("interrupt_session", map[string]any{"session_id": "s"}).expect(t, false, "was not running anything; nothing was changed.")
	})
}

// A kernel that has just run a cell is not said to start: a reader would take its variables for lost.
func TestNoWaitOnAKernelThatIsThere(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for range 8 {
			w.run("s", "print a")
			synctest.Wait() // the session has settled
			got := w.execute("s", "sleep 1s", map[string]any{"wait_seconds": 0})
			if strings.Contains(got.String(), "starting") || !strings.Contains(got.String(), aboutToRun+"; read on") && !strings.Contains(got.String(), "still running") {
				t.Error(got)
			}
		}
	})
}

func TestCellWhoseCallHasReturnedIsNobodys(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w.callWith(ctx, map[string]any{"name": "execute_python", "arguments": map[string]any{
			"session_id": "s", "code": "sleep 30s\nprint done", "wait_seconds": 5}}).expect(t, false, "still running, 5.0 s so far")
		cancel(transport.ErrDisconnected)
		w.get("s", 1, map[string]any{"wait_seconds": 30}).expect(t, false, "done\n[session s · cell 1 · ok · 30 s]")
	})
}

func TestMintedSessionIsKeptWhileItIsAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.call("execute_python", map[string]any{"code": "sleep 1s\nprint done", "wait_seconds": 0})
		id := strings.Fields(strings.TrimPrefix(first.texts[0], "[session "))[0]
		time.Sleep(2 * time.Minute)
		w.get(id, 1, nil).expect(t, false, "done")
		time.Sleep(time.Hour)
		w.get(id, 1, nil).expect(t, false, "done")
	})
}

// What a cancelled cell printed is kept, and the cancelled reading of a cell does it no harm.
func TestCancelledCallsAndReadings(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cancelled := func(params map[string]any) called {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(3*time.Second, func() { cancel(transport.ErrCancelled) })
			return w.callWith(ctx, params)
		}
		cancelled(map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "print a\nwait"}}).
			expect(t, true, "[session s · cell 1 · ") // as the call's own end, or as the cell's if that is as quick
		w.get("s", 1, nil).expect(t, true, "a\n", "KeyboardInterrupt", "because its call was cancelled", "cell 1 · cancelled · 3.0 s]")

		w.execute("s", "sleep 20s\nprint b", map[string]any{"wait_seconds": 0})
		cancelled(map[string]any{"name": "get_execution", "arguments": map[string]any{"session_id": "s", "execution_id": 2}}).
			expect(t, true, "the cell goes on")
		w.get("s", 2, nil).expect(t, false, "b\n[session s · cell 2 · ok · 20 s]")
	})
}

// A cell that was cancelled in the queue never runs, and says so to whoever asks.
func TestCancelledInTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.execute("s", "sleep 10s", map[string]any{"wait_seconds": 0})
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(transport.ErrCancelled) })
		w.callWith(ctx, map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "set x 1"}}).expect(t, true)
		w.get("s", 2, nil).expect(t, true, "cancelled before its cell ran", "[session s · cell 2 · no result]")
		w.run("s", "get x").expect(t, true, "NameError", "cell 3")
	})
}

func TestServerStopsDuringACall(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(transport.ErrShutdown) })
		w.callWith(ctx, map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "print a\nsleep 10s\nprint b"}}).
			expect(t, true, "a\nError: the server is shutting down, so this call ends before its cell does", "get_execution(", "its call ended with the server]")
		again, cancelAgain := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancelAgain(transport.ErrShutdown) })
		w.callWith(again, map[string]any{"name": "get_execution", "arguments": map[string]any{"session_id": "s", "execution_id": 1, "wait_seconds": 60}}).
			expect(t, true, "a\nError: the server is shutting down, so this call ends before its cell does", `get_execution(session_id="s", execution_id=1`)
		w.get("s", 1, nil).expect(t, false, "a\nb\n[session s · cell 1 · ok · 10 s]") // the call's end was not the cell's
	})
	inBubble(t, func(t *testing.T, w *world) {
		time.AfterFunc(3*time.Second, func() { _ = w.service.Sessions.Shutdown(context.Background()) })
		w.run("s", "print a\nwait").expect(t, true, "a\nThe server was stopped while this cell ran. Variables are lost")
	})
}

func TestGetExecutionOfAnErrorAndOfADeath(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a\nerror ValueError wrong")
		w.run("s", "die SIGKILL")
		w.run("s", "1+1")
		w.get("s", 1, nil).expect(t, true, "a\n", "ValueError: wrong", "cell 1 · error")
		w.get("s", 1, map[string]any{"since": 2}).expect(t, true, "[session s · cell 1 · error")
		w.get("s", 2, nil).expect(t, true, "killed by SIGKILL", "cell 2 · kernel died")
		w.get("s", 3, nil).expect(t, false, "Note: The kernel of session", "2\n[session s · cell 3 · ok")
	})
}

func TestGetExecutionShowsLateOutput(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print now\nlate 1s from a thread")
		time.Sleep(2 * time.Second)
		w.get("s", 1, nil).expect(t, false, "now\n[cell 1 went on in the background and produced:]\nfrom a thread\n[session s · cell 1 · ok")
		got := w.get("s", 1, map[string]any{"since": 1})
		got.expect(t, false, "[cell 1 went on in the background")
		if strings.Contains(got.String(), "now\n") {
			t.Errorf("%s", got)
		}
	})
}

func TestGetExecutionErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "1+1")
		w.get("s", 2, nil).expect(t, true, `session "s" has no cell 2: it has had 1`, "list_executions")
		w.get("s", 0, nil).expect(t, true, "execution_id: must be at least 1, got 0")
		w.get("s", "x", nil).expect(t, true, "execution_id: must be an integer, got \"x\"")
		w.get("s", nil, nil).expect(t, true, "execution_id: is required")
		w.get("s", 1, map[string]any{"since": -1}).expect(t, true, "since: must be at least 0")
		w.get("s", 1, map[string]any{"wait_seconds": 3601}).expect(t, true, "wait_seconds: must be between 0 and 3600, got 3601")
		w.execute("s", "1+1", map[string]any{"wait_seconds": -1}).expect(t, true, "wait_seconds: must be between 0 and 3600, got -1")
		w.get("t", 1, nil).expect(t, true, `there is no session "t"`)

		w.kernels.LaunchError = fault.New(fault.Unavailable, "there is no engine")
		w.execute("u", "1+1", map[string]any{"wait_seconds": 0})
		synctest.Wait()
		w.get("u", 1, nil).expect(t, true, `The earlier session "u" ended at`, "there is no engine")
	})
}

// Who may run cells may read their results, and nobody else's language.
func TestWhoMayRunMayRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a")
		w.scopes = []string{"python:execute"}
		w.get("s", 1, nil).expect(t, false, "a\n")
		w.scopes = []string{ScopeRead}
		w.get("s", 1, nil).expect(t, false, "a\n")
		w.scopes = []string{ScopeManage}
		w.get("s", 1, nil).expect(t, true, "needs the scope")
	})
}

func TestResultsSayWhereToReadOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		meta := func(tool string, args map[string]any) string {
			raw, _ := w.request(t.Context(), "tools/call", map[string]any{"name": tool, "arguments": args})
			var r struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
			if err := json.Unmarshal(raw, &r); err != nil {
				t.Fatal(err)
			}
			return string(r.Meta[ExecutionMeta])
		}
		got := meta("execute_python", map[string]any{"session_id": "s", "code": "print a\nsleep 9s", "wait_seconds": 3})
		if want := `{"execution_id":1,"phase":"running","session_id":"s","since":1}`; got != want {
			t.Errorf("got %s", got)
		}
		got = meta("get_execution", map[string]any{"session_id": "s", "execution_id": 1})
		if want := `{"execution_id":1,"phase":"ended","session_id":"s","since":1}`; got != want {
			t.Errorf("got %s", got)
		}
		w.run("s", "die")
		got = meta("execute_python", map[string]any{"session_id": "s", "code": "print a"})
		if want := `{"execution_id":3,"noted":true,"phase":"ended","session_id":"s","since":1}`; got != want {
			t.Errorf("told that the kernel is another one, got %s", got)
		}
	})
}

func TestListExecutions(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "sleep 1s\nprint b")
		w.run("s", "error E "+strings.Repeat("x", 200))
		w.execute("s", "wait", map[string]any{"timeout_seconds": 2})
		w.execute("s", "wait", map[string]any{"wait_seconds": 0})
		w.execute("s", "1+1", map[string]any{"wait_seconds": 0})
		time.Sleep(3 * time.Second)
		got := w.call("list_executions", map[string]any{"session_id": "s"})
		want := "1 · ok · 1.0 s · sleep 1s …\n2 · error · 0.00 s · error E " + strings.Repeat("x", 72) + " …\n3 · timed out · 2.0 s · wait\n" +
			"4 · running · 3.0 s · wait\n5 · queued · 1+1"
		if got.String() != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		var list struct{ Executions []executionEntry }
		if err := json.Unmarshal(got.structured, &list); err != nil || len(list.Executions) != 5 {
			t.Fatalf("%s %v", got.structured, err)
		}
		if e := list.Executions[3]; e.ID != 4 || e.Status != "running" || e.Seconds != 3 || e.Started == "" {
			t.Errorf("%+v", e)
		}
		w.call("list_executions", map[string]any{"session_id": "s", "limit": 2}).expect(t, false, "4 · running")
		if got := w.call("list_executions", map[string]any{"session_id": "s", "limit": 2}); strings.Contains(got.String(), "timed out") {
			t.Errorf("limit: %s", got)
		}
		w.call("list_executions", map[string]any{"session_id": "none"}).expect(t, true, "there is no session")
	})
}

// A cell that only a restart of its kernel could stop was interrupted, for all who read of it, also when it is read from the store; one
// whose kernel died of itself while it was being stopped was not.
func TestInterruptedByRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := storetest.NewMemory(), t.TempDir()
		w := newWorld(t, func(c *sessions.Config) { c.Store, c.DataDir = store, dir })
		defer func() { w.kernels.StopAll() }()
		stop := func(code, want string) {
			w.execute("s", code, map[string]any{"wait_seconds": 1})
			w.call("interrupt_session", map[string]any{"session_id": "s"}).expect(t, false, want)
		}
		stop("print half\nstubborn 24h", "its kernel had to be restarted")
		time.AfterFunc(3*time.Second, func() {
			launched := w.kernels.Launched()
			w.kernels.Kernel(launched[len(launched)-1].ID).Crash(kernels.ExitStatus{Code: -1, Signal: "SIGKILL"})
		})
		stop("print all\nstubborn 24h", "Its kernel ended before it stopped")
		check := func(when string) {
			t.Helper()
			got := w.call("list_executions", map[string]any{"session_id": "s"}).String()
			if !strings.HasPrefix(got, "1 · interrupted · ") || !strings.Contains(got, "\n2 · kernel died · ") {
				t.Errorf("%s: the list is\n%s", when, got)
			}
			w.get("s", 1, nil).expect(t, true, "half\n", "The kernel was restarted because the cell did not stop", "cell 1 · interrupted")
			w.get("s", 2, nil).expect(t, true, "all\n", "SIGKILL", "cell 2 · kernel died")
			if got := outline(w.book("s")); !strings.Contains(got, "interrupted: stdout half;") {
				t.Errorf("%s: the notebook has\n%s", when, got)
			}
		}
		check("at once")
		if err := w.service.Sessions.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.kernels.StopAll()
		w = newWorld(t, func(c *sessions.Config) { c.Store, c.DataDir = store.Another(), dir })
		check("from the store")
		_ = w.service.Sessions.Shutdown(t.Context())
	})
}

// A cell that ran when its kernel was restarted, or its session closed, did not make its kernel die: all who read of it are told so, also
// when it is read from the store. The audit log says the same.
func TestCellsThatEndedWithTheirKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := storetest.NewMemory(), t.TempDir()
		var audited []string
		w := newWorld(t, func(c *sessions.Config) {
			c.Store, c.DataDir = store, dir
			c.Ended = func(o sessions.Owner, e *sessions.Execution) { audited = append(audited, CellEnded(o, e).Status) }
		})
		defer func() { w.kernels.StopAll() }()
		w.run("s", "print well")
		w.execute("s", "print half\nsleep 24h", map[string]any{"wait_seconds": 1})
		w.call("restart_session", map[string]any{"session_id": "s"}).expect(t, false, "generation 2")
		w.run("s", "die")
		w.execute("s", "print most\nsleep 24h", map[string]any{"wait_seconds": 1})
		w.call("close_session", map[string]any{"session_id": "s"})
		check := func(when string) {
			t.Helper()
			got := w.call("list_executions", map[string]any{"session_id": "s"}).String()
			for i, want := range []string{"ok", "kernel restarted", "kernel died", "kernel stopped"} {
				if line := fmt.Sprintf("%d · %s · ", i+1, want); !strings.Contains("\n"+got, "\n"+line) {
					t.Errorf("%s: %q is not in the list\n%s", when, line, got)
				}
			}
			w.get("s", 2, nil).expect(t, true, "half\n", "The kernel was restarted on request while this cell ran.", "cell 2 · kernel restarted")
			w.get("s", 4, nil).expect(t, true, "most\n", "The session was closed while this cell ran.", "cell 4 · kernel stopped")
			if got := outline(w.book("s")); !strings.Contains(got, "kernel restarted: stdout half;") || !strings.Contains(got, "kernel stopped: stdout most;") {
				t.Errorf("%s: the notebook has\n%s", when, got)
			}
		}
		check("at once")
		if want := []string{"ok", "kernel restarted", "kernel died", "kernel stopped"}; !slices.Equal(audited, want) {
			t.Errorf("the audit log has %q, want %q", audited, want)
		}
		if err := w.service.Sessions.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.kernels.StopAll()
		w = newWorld(t, func(c *sessions.Config) { c.Store, c.DataDir = store.Another(), dir })
		check("from the store")
		_ = w.service.Sessions.Shutdown(t.Context())
	})
}

// Beyond the bound of the queue a call is told at once, and what it can do.
func TestFullQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for i := range 33 {
			w.execute("s", "sleep 1s", map[string]any{"wait_seconds": 0})
			if i == 0 {
				synctest.Wait()
			}
		}
		w.run("s", "1+1").expect(t, true, `session "s" has 32 cells waiting`, "Hint: wait for them", "interrupt_session")
		w.execute("s2", "1+1", map[string]any{"wait_seconds": 1}).expect(t, false, "2")
		w.get("s", 33, map[string]any{"wait_seconds": 1.5}).expect(t, false, "waiting for 31 cells before it in the session")
		if got := w.get("s", 33, map[string]any{"wait_seconds": 100}); got.isError {
			t.Error(got)
		}
	})
}

// A long poll gives signs of life as the call itself does, and never more often than it should.
func TestReadingHearsProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.execute("s", "sleep 12s\nprint a\nsleep 12s", map[string]any{"wait_seconds": 0})
		w.execute("s", "1+1", map[string]any{"wait_seconds": 0})
		synctest.Wait()
		w.callWith(t.Context(), map[string]any{"name": "get_execution", "arguments": map[string]any{"session_id": "s", "execution_id": 2},
			"_meta": map[string]any{"progressToken": "tok"}}).expect(t, false, "2\n[session s · cell 2 · ok")
		if len(w.notes) != 4 || w.notes[0].message != "waiting for 1 cell before it in the session" || w.notes[3].at != 20*time.Second {
			t.Errorf("%+v", w.notes)
		}
		w.notes = nil
		w.execute("s", "sleep 12s\nprint a\nsleep 1s", map[string]any{"wait_seconds": 0})
		w.callWith(t.Context(), map[string]any{"name": "get_execution", "arguments": map[string]any{"session_id": "s", "execution_id": 3},
			"_meta": map[string]any{"progressToken": "tok"}}).expect(t, false, "a\n[session s · cell 3 · ok")
		if n := len(w.notes); n != 3 || w.notes[1].message != "running for 10 s" || w.notes[2].message != "running for 12 s\na" {
			t.Errorf("%+v", w.notes)
		}
	})
}
