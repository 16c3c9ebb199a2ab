//go:build linux

package sessions_test

import (
	"slices"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// hanging has objects that take for ever to tell what they have.
const hanging = `
class Slow:
    def __dir__(self):
        while True: pass
slow, answer = Slow(), 42
def stretch(width):
    "Makes it as wide as WIDTH."
`

func TestRealAssist(t *testing.T) {
	m := newReal(t)
	run(t, m, cell(hanging))
	c, err := m.Complete(t.Context(), owner, "real", "é = answ", 8)
	for range 10 { // the first one takes its time on a busy machine
		if fault.KindOf(err) != fault.Timeout {
			break
		}
		c, err = m.Complete(t.Context(), owner, "real", "é = answ", 8)
	}
	if err != nil || c.Start != 4 || c.End != 8 || !slices.ContainsFunc(c.Matches, func(m sessions.Match) bool { return m.Text == "answer" }) {
		t.Errorf("%+v %v", c, err)
	}
	help, err := m.Inspect(t.Context(), owner, "real", "stretch(", 8)
	if err != nil || !strings.Contains(help, "as wide as WIDTH") {
		t.Errorf("%q %v", help, err)
	}
	if help, err := m.Inspect(t.Context(), owner, "real", "no_such_name", 5); help != "" || err != nil {
		t.Errorf("%q %v", help, err)
	}
	_, err = m.Complete(t.Context(), owner, "real", "slow.", 5)
	t.Log("an object that hangs:", err)
	if err != nil && fault.KindOf(err) != fault.Timeout {
		t.Errorf("%v", err)
	}
	if got, r, e := run(t, m, cell("answer")); !strings.HasSuffix(got, `"42"`) || r.Status != kernels.StatusOK || e.Generation() != 1 {
		t.Errorf("%q on generation %d: %+v", got, e.Generation(), r)
	}
}
