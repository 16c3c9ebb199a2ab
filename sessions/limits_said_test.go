package sessions

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
)

// Whatever meets a limit is told which it is, how much there is, and what to do.
func TestEveryLimitIsToldWithWhatToDo(t *testing.T) {
	fill := func(t *testing.T, m *Manager) { // one session, in which one cell runs and one waits
		t.Helper()
		start(t, m, alice, python("a", "sleep 1h"))
		synctest.Wait()
		start(t, m, alice, python("a", "x"))
	}
	run := func(r Request) func(*Manager) error {
		return func(m *Manager) error {
			_, err := m.Execute(context.Background(), alice, r)
			return err
		}
	}
	long := python("b", "x")
	long.Timeout = 2 * time.Hour
	for name, tt := range map[string]struct {
		set  func(*Config)
		do   func(*Manager) error
		kind fault.Kind
		said []string
	}{
		"sessions.per_owner":    {func(c *Config) { c.MaxSessionsPerOwner = 1 }, run(python("b", "x")), fault.Busy, []string{"no more sessions", "1 of 1", "close_session"}},
		"sessions.max":          {func(c *Config) { c.MaxSessions = 1 }, run(python("b", "x")), fault.Busy, []string{"the server", "1 of 1", "try again later"}},
		"sessions.max_waiting":  {func(c *Config) { c.MaxWaiting = 1 }, run(python("b", "x")), fault.Busy, []string{"1 cells wait", "the most", "try again"}},
		"sessions.max_queue":    {func(c *Config) { c.MaxQueue = 1 }, run(python("a", "x")), fault.Busy, []string{`"a" has 1 cells waiting`, "the most", "interrupt_session"}},
		"min_free_memory":       {nil, run(python("b", "x")), fault.Busy, []string{"100 MiB are free", "512 MiB must be", "try again later"}},
		"workspace_max_bytes":   {func(c *Config) { c.WorkspaceBytes = 1 << 20 }, writeOf(2 << 20), fault.Conflict, []string{"holds 0 bytes", "may hold 1 MiB", "2 MiB more", "delete files"}},
		"timeout.max":           {nil, run(long), fault.Invalid, []string{"7200", "3600 seconds", "several cells", "timeout.max"}},
		"the length of a cell":  {nil, run(python("b", strings.Repeat("x", MaxCode+1))), fault.Invalid, []string{"1048577 bytes", "at most 1048576", "file"}},
		"the length of a name":  {nil, run(python(strings.Repeat("x", 65), "x")), fault.Invalid, []string{"64"}},
		"the size of one write": {nil, writeOf(MaxFile + 1), fault.Invalid, []string{"16 MiB", "in parts"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTestManager(t, &fakeProvisioner{}, func(c *Config) {
					if tt.set != nil {
						tt.set(c)
					}
				})
				defer m.Shutdown(context.Background())
				host := fstest.MapFS{}
				m.memory = &hostMemory{proc: host}
				fill(t, m)
				if name == "min_free_memory" {
					host["meminfo"] = &fstest.MapFile{Data: []byte("MemAvailable: 102400 kB\n")}
				}
				err := tt.do(m)
				if fault.KindOf(err) != tt.kind {
					t.Fatalf("got %v", err)
				}
				for _, word := range tt.said {
					if !strings.Contains(fault.Text(err), word) {
						t.Errorf("it does not say %q: %s", word, fault.Text(err))
					}
				}
			})
		})
	}
}

// writeOf puts a file of a size into the workspace.
func writeOf(size int) func(*Manager) error {
	return func(m *Manager) error {
		_, _, err := m.WriteFile(context.Background(), alice, "a", "big", make([]byte, size))
		return err
	}
}
