//go:build linux

package sessions_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
)

// newPool returns a Manager with real kernels whose pool is full.
func newPool(t *testing.T, size int, change ...func(*sessions.Config)) *sessions.Manager {
	t.Helper()
	m := newReal(t, append(change, func(c *sessions.Config) {
		spec := c.Runtimes["python"]
		spec.Kernelspec.Language = "python"
		c.Runtimes, c.PoolSize = map[string]sessions.Runtime{"python": spec}, size
	})...)
	m.StartPool()
	awaitPool(t, m, size)
	return m
}

func awaitPool(t *testing.T, m *sessions.Manager, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for m.Stats().Pool.Ready["python"] != size {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the pool is not full: %+v", m.Stats().Pool)
		}
	}
}

func TestRealPool(t *testing.T) {
	m := newPool(t, 1)
	if infos, err := m.List(t.Context(), owner); err != nil || len(infos) != 0 {
		t.Errorf("sessions: %+v %v", infos, err)
	}
	got, r, e := run(t, m, cell("1+1"))
	if got != `"2"` || r.ExecutionCount != 1 || e.Generation() != 1 || e.Preamble() != "" {
		t.Errorf("%q, In[%d], generation %d, %q", got, r.ExecutionCount, e.Generation(), e.Preamble())
	}
	run(t, m, cell("import os, pathlib; pathlib.Path('kept.txt').write_text('here'); os.mkdir('d'); open('d/f', 'w').close(); x = 1"))

	// A restart, and the generation after a death, bring the files along; who the id is another's of gets none.
	awaitPool(t, m, 1)
	if info, err := m.Restart(t.Context(), owner, "real"); err != nil || info.Generation != 2 || info.State != sessions.Idle {
		t.Errorf("restart: %+v %v", info, err)
	}
	const look = "import os; print(open('kept.txt').read(), os.listdir('d'), 'x' in globals(), os.getcwd())"
	if got, r, _ := run(t, m, cell(look)); got != "here ['f'] False /workspace\n" || r.ExecutionCount != 1 {
		t.Errorf("after a restart: %q, In[%d]", got, r.ExecutionCount)
	}
	awaitPool(t, m, 1)
	run(t, m, cell("import os; os.kill(os.getpid(), 9)"))
	if got, _, e := run(t, m, cell(look)); got != "here ['f'] False /workspace\n" || e.Generation() != 3 || !strings.Contains(e.Preamble(), "SIGKILL") {
		t.Errorf("after a death: %q, generation %d, %q", got, e.Generation(), e.Preamble())
	}
	awaitPool(t, m, 1)
	other := sessions.Owner{Issuer: "test", Subject: "dave"}
	theirs, err := m.Execute(t.Context(), other, cell("import os; print(os.listdir())"))
	if err != nil {
		t.Fatal(err)
	}
	for out := range theirs.Outputs(t.Context()) {
		if out.Text != "[]\n" {
			t.Errorf("another owner sees %q", out.Text)
		}
	}

	// A pooled kernel is under the same limits as any.
	awaitPool(t, m, 1)
	r0 := sessions.Request{SessionID: "limits", Code: "x = bytearray(2 << 30)"}
	if _, r, _ := run(t, m, r0); r.Status == kernels.StatusOK {
		t.Error("more memory than the limit was allocated")
	}
}

// What was imported beforehand is there, and leaves no trace: to its user the kernel looks like any other.
func TestRealPoolPreloads(t *testing.T) {
	m := newPool(t, 1, func(c *sessions.Config) {
		c.PoolPreload = []string{"wave", "no_such_module"}
	})
	look := func(id string) string {
		const code = "import sys; print('wave' in sys.modules, sorted(globals()), In, Out, repr(_), hasattr(sys, 'last_value'))"
		got, r, _ := run(t, m, sessions.Request{SessionID: id, Code: code})
		return fmt.Sprint(got, r.ExecutionCount)
	}
	pooled, fresh := look("pooled"), look("fresh")
	if strings.Replace(pooled, "True", "False", 1) != fresh {
		t.Errorf("pooled: %s\nfresh: %s", pooled, fresh)
	}
	const collected = "import gc, wave; print(gc.isenabled(), any(o is wave.Wave_read for o in gc.get_objects()))"
	if got, _, _ := run(t, m, sessions.Request{SessionID: "pooled", Code: collected}); strings.TrimSpace(got) != "True False" {
		t.Errorf("the collector looks at what was imported beforehand: %s", got)
	}
}

// Many at once, with files: each sees its own and nobody else's, whether its kernel is from the pool or not.
func TestRealPoolKeepsSessionsApart(t *testing.T) {
	m := newPool(t, 2)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			id := fmt.Sprint("s", i)
			write := fmt.Sprintf("open('%s.txt', 'w').close()", id)
			run(t, m, sessions.Request{SessionID: id, Code: write})
			if _, err := m.Restart(t.Context(), owner, id); err != nil {
				t.Error(err)
			}
			if got, _, _ := run(t, m, sessions.Request{SessionID: id, Code: "import os; print(*os.listdir())"}); got != id+".txt\n" {
				t.Errorf("%s sees %q", id, got)
			}
		})
	}
	wg.Wait()
}
