package sessions

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"cellblock/kernels"
)

// A cell that its kernel never had runs on the next one, and is told what was lost. It does so once.
func TestCellThatItsKernelNeverHad(t *testing.T) {
	for code, want := range map[string]struct {
		status     kernels.Status
		text       string
		generation int
	}{
		"unsent 1": {kernels.StatusOK, "at last", 2},
		"unsent 2": {kernels.StatusDied, "", 2},
		"vanish":   {kernels.StatusDied, "", 1},
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTestManager(t, &fakeProvisioner{})
				defer m.Shutdown(context.Background())
				execute(t, m, alice, "s", "x")
				e := start(t, m, alice, python("s", code))
				behind := start(t, m, alice, python("s", "y"))
				r := wait(t, e)
				if got := text(t, e); r.Status != want.status || got != want.text || e.Generation() != want.generation {
					t.Errorf("it ended as %+v on generation %d and printed %q", r, e.Generation(), got)
				}
				if told := strings.Contains(e.Preamble(), "(generation 1) ended"); told != (want.generation > 1) {
					t.Errorf("it is told %q", e.Preamble())
				}
				if code == "vanish" && !strings.Contains(r.Death.Cause, "or not at all") {
					t.Errorf("it died of %q", r.Death.Cause)
				}
				wait(t, behind)
				if behind.Number() != e.Number()+1 || strings.Contains(behind.Preamble(), "or not at all") {
					t.Errorf("cell %d is told %q", behind.Number(), behind.Preamble())
				}
			})
		})
	}
}

// So does one that could not be sent because the connection was down when its kernel died.
func TestCellOfAKernelThatDiedUnplugged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		p.unplugged.Store(true)
		e := start(t, m, alice, python("s", "y"))
		synctest.Wait()
		p.unplugged.Store(false)
		p.last().die(kernels.Death{Cause: "the kernel was killed by SIGKILL"})
		if r := wait(t, e); r.Status != kernels.StatusOK || e.Generation() != 2 || !strings.Contains(e.Preamble(), "SIGKILL") {
			t.Errorf("it ended as %+v on generation %d, told %q", r, e.Generation(), e.Preamble())
		}
	})
}

// What a cell was to be told is not lost with the kernel that never had it.
func TestNewsOfACellThatWasPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "die")
		e, _ := execute(t, m, alice, "s", "unsent 1")
		for _, want := range []string{"(generation 1) ended", "(generation 2) ended", "new kernel, generation 3"} {
			if !strings.Contains(e.Preamble(), want) {
				t.Errorf("%q is missing in %q", want, e.Preamble())
			}
		}
	})
}
