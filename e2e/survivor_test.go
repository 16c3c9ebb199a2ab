package e2e

import (
	"strings"
	"testing"
)

// Of two servers on one data folder one is killed. The other goes on with its sessions when it is asked for them: variables,
// running cell and all. The next that starts leaves them to it.
func TestSurvivorGoesOnWithSessionsOfTheKilled(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		killed, survivor := startIn(t, dir, runtime), startIn(t, dir, runtime, noPool)
		token := killed.Token(t)
		c := killed.Connect(t, token, false)
		python(t, c, "idle", "x = 41")
		python(t, c, "closed", "x = 41")
		begin(t, c, "busy", "import time\nprint('begun', flush=True)\ntime.sleep(4)\nx = 41")
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "busy", 1), "begun") })
		killed.Kill(t)

		c = survivor.Connect(t, token, false)
		wantText(t, getExecution(t, c, "busy", 1, 30).Text, "cell 1 · ok")
		if r := call(t, c, "close_session", map[string]any{"session_id": "closed"}); r.IsError {
			t.Error(r.Text)
		}

		goesOn := func(session string) {
			t.Helper()
			r := python(t, c, session, "print('x is', x)")
			wantText(t, r.Text, "x is 41", "· ok")
			if strings.Contains(r.Text, "lost") {
				t.Errorf("%s is told of a loss:\n%s", session, r.Text)
			}
		}
		goesOn("idle")
		goesOn("busy")
		next := startIn(t, dir, runtime, noPool) // in the place of the one that was killed
		for _, session := range []string{"idle", "busy"} {
			wantText(t, python(t, next.Connect(t, token, false), session, "1").Text, "another cellblock process")
			goesOn(session)
		}
		left := func(n int) {
			t.Helper()
			if runtime != "local" {
				waitFor(t, func() bool {
					left, err := containers(t, runtime, dir)
					return err == nil && len(strings.Fields(left)) == n
				})
			}
		}
		left(2) // who takes the place ends what was in the pool of the one that was killed, if he has the time
		next.Stop(t)
		survivor.Stop(t)
		left(0)
	})
}
