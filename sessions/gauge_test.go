package sessions

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels"
)

func TestGauge(t *testing.T) {
	const mb = 1 << 20
	for name, tt := range map[string]struct {
		before, begin, size int64
		want                bool
	}{
		"room left":                         {0, 10 * mb, 90 * mb, false},
		"too much":                          {90 * mb, 90 * mb, 101 * mb, true},
		"too much before":                   {150 * mb, 150 * mb, 150 * mb, false},
		"too much before, less now":         {150 * mb, 150 * mb, 120 * mb, false},
		"too much before, a little more":    {150 * mb, 150 * mb, 160 * mb, false},
		"too much before, much more":        {150 * mb, 150 * mb, 170 * mb, true},
		"too much before, that was not his": {150 * mb, 170 * mb, 170 * mb, false},
		"less, and then much more":          {120 * mb, 120 * mb, 140 * mb, true},
	} {
		var g gauge
		g.note(tt.before, 0, 100*mb)
		if got := g.note(tt.size, tt.begin, 100*mb); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestGaugeLooksMoreOftenTheLessRoomIsLeft(t *testing.T) {
	at := time.Unix(1000, 0)
	for size, want := range map[int64]time.Duration{0: latest, 9 << 30: 562500 * time.Microsecond, 10 << 30: soonest, 20 << 30: soonest} {
		g := gauge{size: size, at: at}
		if got := g.due(10 << 30).Sub(at); got != want {
			t.Errorf("with %d: after %v, want %v", size, got, want)
		}
	}
	if g := (gauge{at: at, took: time.Second}); g.due(1).Sub(at) != 5*time.Second {
		t.Error("what takes long is done too often")
	}
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCellThatFillsItsWorkspaceIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p, func(c *Config) { c.WorkspaceBytes = 1 << 20 })
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		data := filepath.Join(p.specs[0].Workspace, "data")
		e := start(t, m, alice, python("s", "sleep 10m"))
		time.Sleep(time.Minute + time.Millisecond) // not while it is measured
		write(t, data, 3<<20)
		began := time.Now()
		r := wait(t, e)
		if took := time.Since(began); took > latest || r.Overrun < 3<<20 || r.Status != kernels.StatusError || !r.Interrupt.VariablesKept || r.TimedOut || r.Cancelled {
			t.Errorf("after %v: %+v", took, r)
		}
		next, _ := execute(t, m, alice, "s", "x")
		if !strings.Contains(next.Preamble(), "holds 3 MiB, more than its limit of 1 MiB") || strings.Contains(next.Preamble(), "lost") {
			t.Errorf("the next cell is told %q", next.Preamble())
		}
		// Who only reads, or makes room, goes on.
		e = start(t, m, alice, python("s", "sleep 1m"))
		time.Sleep(30 * time.Second)
		if err := os.Remove(data); err != nil {
			t.Fatal(err)
		}
		if r := wait(t, e); r.Overrun != 0 || r.Status != kernels.StatusOK {
			t.Errorf("a cell that made room: %+v", r)
		}
		if next, _ := execute(t, m, alice, "s", "x"); next.Preamble() != "" {
			t.Errorf("there is room again, but: %q", next.Preamble())
		}
	})
}

func TestWorkspaceIsNotMeasuredWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p, func(c *Config) { c.WorkspaceBytes = -1 })
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		write(t, filepath.Join(p.specs[0].Workspace, "data"), 3<<20)
		if _, r := execute(t, m, alice, "s", "sleep 10s"); r.Overrun != 0 || r.Status != kernels.StatusOK {
			t.Errorf("%+v", r)
		}
	})
}
