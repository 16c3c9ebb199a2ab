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
	c, err := patiently(func() (sessions.Completion, error) {
		return m.Complete(t.Context(), owner, "real", "é = answ", 8)
	})
	if err != nil || c.Start != 4 || c.End != 8 || !slices.ContainsFunc(c.Matches, func(m sessions.Match) bool { return m.Text == "answer" }) {
		t.Errorf("%+v %v", c, err)
	}
	inspect := func(code string) (string, error) {
		return patiently(func() (string, error) { return m.Inspect(t.Context(), owner, "real", code, len(code)) })
	}
	if help, err := inspect("stretch("); err != nil || !strings.Contains(help, "as wide as WIDTH") {
		t.Errorf("%q %v", help, err)
	}
	if help, err := inspect("no_such_name"); help != "" || err != nil {
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

// patiently asks again for what a kernel on a busy machine could not answer in time.
func patiently[T any](ask func() (T, error)) (answer T, err error) {
	for range 10 {
		if answer, err = ask(); fault.KindOf(err) != fault.Timeout {
			break
		}
	}
	return answer, err
}
