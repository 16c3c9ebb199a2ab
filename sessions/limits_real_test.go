//go:build linux

package sessions_test

import (
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
)

// A cell that fills the disk as fast as it can is stopped before it has taken much more than it may.
func TestRealCellThatFillsItsWorkspace(t *testing.T) {
	const limit, most = 64 << 20, 64<<20 + 256<<20
	m := newReal(t, func(c *sessions.Config) { c.WorkspaceBytes = limit })
	run(t, m, cell("x = 1"))
	_, r, _ := run(t, m, cell(`block = b'x' * (4 << 20)
n = 0
with open('big', 'wb') as f:
    while n < 800 << 20:
        n += f.write(block)`))
	if r.Status != kernels.StatusError || r.Overrun <= limit || r.Overrun > most || !r.Interrupt.VariablesKept {
		t.Errorf("%+v", r)
	}
	got, _, e := run(t, m, cell("import os\nsize = os.stat('big').st_size\nos.remove('big')\nprint(size < 576 << 20, x)"))
	if got != "True 1\n" || !strings.Contains(e.Preamble(), "more than its limit of 64 MiB") {
		t.Errorf("%q, %q", got, e.Preamble())
	}
	if _, r, e := run(t, m, cell("open('small', 'w').write('x')")); r.Status != kernels.StatusOK || e.Preamble() != "" {
		t.Errorf("afterwards: %+v, %q", r, e.Preamble())
	}
}
