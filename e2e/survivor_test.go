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
		killed, survivor := startIn(t, dir, runtime), startIn(t, dir, runtime)
		token := killed.token(t)
		c := killed.connect(t, token)
		python(t, c, "idle", "x = 41")
		python(t, c, "closed", "x = 41")
		begin(t, c, "busy", "import time\nprint('begun', flush=True)\ntime.sleep(4)\nx = 41")
		waitFor(t, func() bool { return strings.Contains(wholeOutput(t, c, "busy", 1), "begun") })
		killed.kill(t)

		c = survivor.connect(t, token)
		wantText(t, getExecution(t, c, "busy", 1, 30).text, "cell 1 · ok")
		if r := call(t, c, "close_session", map[string]any{"session_id": "closed"}); r.isError {
			t.Error(r.text)
		}

		goesOn := func(session string) {
			t.Helper()
			r := python(t, c, session, "print('x is', x)")
			wantText(t, r.text, "x is 41", "· ok")
			if strings.Contains(r.text, "lost") {
				t.Errorf("%s is told of a loss:\n%s", session, r.text)
			}
		}
		goesOn("idle")
		goesOn("busy")
		next := startIn(t, dir, runtime) // in the place of the one that was killed
		for _, session := range []string{"idle", "busy"} {
			wantText(t, python(t, next.connect(t, token), session, "1").text, "another cellblock process")
			goesOn(session)
		}
		next.stop(t)
		survivor.stop(t)
		if runtime != "local" {
			waitFor(t, func() bool {
				left, err := containers(t, runtime, dir)
				return err == nil && left == ""
			})
		}
	})
}
