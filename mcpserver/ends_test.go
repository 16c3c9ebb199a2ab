package mcpserver

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/sessions"
)

func TestEndOfAKernelIsAnnounced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print x")
		time.Sleep(18 * time.Minute)
		w.call("list_sessions", nil).expect(t, false, "· kernel stops in 12 min unless a cell runs")
		cell := map[string]any{"session_id": "s", "execution_id": 1}
		if got := w.call("get_execution", cell); strings.Contains(got.String(), "stops in") {
			t.Errorf("told too early: %s", got)
		}
		time.Sleep(8 * time.Minute)
		w.call("get_execution", cell).expect(t, false, "Note: this session's kernel stops in 4 min unless a cell runs; its variables")
		if got := w.run("s", "print x"); strings.Contains(got.String(), "stops in") {
			t.Errorf("told although it was just used: %s", got)
		}
	})
}

func TestEndOfTheLongestLifeIsAnnounced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print x")
		for range 96 {
			time.Sleep(14*time.Minute + 58*time.Second)
			w.run("s", "print x")
		}
		w.call("list_sessions", nil).expect(t, false, "· kernel stops in 3 min")
		w.run("s", "print x").expect(t, false, "kernel stops in 3 min; its variables go with it")
		time.Sleep(4 * time.Minute)
		w.call("list_sessions", nil).expect(t, false, "· stopped ·")
		w.run("s", "print x").expect(t, false, "Note: The kernel of session", "it was stopped because it had lived for 24 hours")
	})
}

func TestEndsIn(t *testing.T) {
	for left, want := range map[time.Duration]string{
		30 * time.Second: "30 s", time.Minute: "1 min", 119 * time.Minute: "119 min", 23*time.Hour + time.Minute: "23 h", -time.Second: "0 s",
	} {
		at := time.Now().Add(left + 500*time.Millisecond)
		if got := endsIn(sessions.End{At: at}); got != "stops in "+want {
			t.Errorf("%v: %q", left, got)
		}
		if got := endsIn(sessions.End{At: at, Unused: true}); got != "stops in "+want+" unless a cell runs" {
			t.Errorf("%v: %q", left, got)
		}
	}
}

func TestCellThatWaitsForOthersOfTheServerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *sessions.Config) { c.MaxRunning = 1 })
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		w.call("execute_python", map[string]any{"session_id": "a", "code": "sleep 5m", "wait_seconds": 0})
		synctest.Wait()
		w.callWith(t.Context(), map[string]any{
			"name": "execute_python", "arguments": map[string]any{"session_id": "b", "code": "print x", "wait_seconds": 20},
			"_meta": map[string]any{"progressToken": "t"},
		}).expect(t, false, "waiting for its turn: the server runs as many cells as it may; read on with")
		if last := w.notes[len(w.notes)-1]; !strings.Contains(last.message, "waiting for its turn") {
			t.Errorf("progress says %q", last.message)
		}
	})
}

func TestLimitOfSessionsSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *sessions.Config) { c.MaxSessionsPerOwner = 1 })
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		w.run("a", "print x")
		w.run("b", "print x").expect(t, true, "you may have no more sessions with a kernel: 1 of 1 are there", "close_session", "idle: a")
	})
}
