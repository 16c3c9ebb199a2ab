package e2e

import (
	"strings"
	"testing"
	"time"

	"cellblock/e2e/rig"
)

// A server keeps a kernel ready, which nobody sees until a session takes it; the session's files go from one to the next.
func TestPool(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		s := startIn(t, t.TempDir(), runtime)
		c := s.Connect(t, s.Token(t), false)
		awaitPool(t, c)
		if got := call(t, c, "list_sessions", nil).Text; strings.Contains(got, "python") {
			t.Errorf("sessions: %s", got)
		}
		began := time.Now()
		wantText(t, python(t, c, "pooled", "1+1").Text, "2")
		t.Logf("the first result after %v", time.Since(began))
		wantText(t, python(t, c, "pooled", "open('kept.txt', 'w').write('here'); x = 1").Text, "4")
		awaitPool(t, c)
		if r := call(t, c, "restart_session", map[string]any{"session_id": "pooled"}); r.IsError {
			t.Fatal(r.Text)
		}
		wantText(t, python(t, c, "pooled", "print(open('kept.txt').read(), 'x' in globals())").Text, "here False")
		awaitPool(t, c)
		wantText(t, python(t, c, "another", "import os; print(os.listdir())").Text, "[]")
	})
}

func awaitPool(t *testing.T, c *rig.Client) {
	t.Helper()
	waitFor(t, func() bool { return strings.Contains(call(t, c, "health", nil).Text, "python 1 of 1") })
}
