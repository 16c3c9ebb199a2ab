package mcpserver

import (
	"strings"
	"testing"
	"time"

	"cellblock/sessions"
)

func TestEndOfAKernelIsAnnounced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print x")
		time.Sleep(18 * time.Minute)
		w.call("list_sessions", nil).expect(t, false, "· ends in 12 min unless used")
		cell := map[string]any{"session_id": "s", "execution_id": 1}
		if got := w.call("get_execution", cell); strings.Contains(got.String(), "ends in") {
			t.Errorf("told too early: %s", got)
		}
		time.Sleep(8 * time.Minute)
		w.call("get_execution", cell).expect(t, false, "Note: this session's kernel ends in 4 min unless used; its variables")
		if got := w.run("s", "print x"); strings.Contains(got.String(), "ends in") {
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
		w.call("list_sessions", nil).expect(t, false, "· ends in 3 min")
		w.run("s", "print x").expect(t, false, "kernel ends in 3 min; its variables go with it")
		time.Sleep(4 * time.Minute)
		w.call("list_sessions", nil).expect(t, false, "· culled ·")
		w.run("s", "print x").expect(t, false, "Note: The kernel of session", "culled because it had lived for 24h0m0s")
	})
}

func TestEndsIn(t *testing.T) {
	for left, want := range map[time.Duration]string{
		30 * time.Second: "30 s", time.Minute: "1 min", 119 * time.Minute: "119 min", 23*time.Hour + time.Minute: "23 h", -time.Second: "0 s",
	} {
		at := time.Now().Add(left + 500*time.Millisecond)
		if got := endsIn(sessions.End{At: at}); got != "ends in "+want {
			t.Errorf("%v: %q", left, got)
		}
		if got := endsIn(sessions.End{At: at, Unused: true}); got != "ends in "+want+" unless used" {
			t.Errorf("%v: %q", left, got)
		}
	}
}
