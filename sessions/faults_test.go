package sessions

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

// newFaultyManager returns a Manager over scripted kernels that speak the wire, with the real client between.
func newFaultyManager(t *testing.T, p *kernelstest.Provisioner, change ...func(*Config)) *Manager {
	t.Helper()
	cfg := Config{
		Provisioner: p, DataDir: t.TempDir(), Runtimes: map[string]Runtime{"python": {}},
		Profiles: map[string]Profile{DefaultProfile: {Limits: kernels.Limits{Memory: 1 << 30}}}, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// inBubble runs a test with a Manager over scripted kernels and time that passes at once. Nothing is left at its end.
func inBubble(t *testing.T, p func() *kernelstest.Provisioner, test func(*testing.T, *Manager, *kernelstest.Provisioner)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		prov := p()
		m := newFaultyManager(t, prov)
		defer prov.StopAll()
		defer func() {
			if err := m.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		test(t, m, prov)
	})
}

func TestWhatKernelsDoToCells(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		status     kernels.Status
		text       string
		cause      string // of a death
		next       string // in the next cell's preamble
	}{
		{name: "prints", code: "print a\nprint b", status: kernels.StatusOK, text: "a\nb\n"},
		{name: "fails", code: "print a\nerror ValueError no", status: kernels.StatusError, text: "a\n"},
		{name: "idle first", code: "print a\nidlefirst", status: kernels.StatusOK, text: "a\n"},
		{name: "no idle", code: "print a\nnoidle", status: kernels.StatusOK, text: "a\n"},
		{name: "no reply", code: "print a\nnoreply", status: kernels.StatusIncomplete, text: "a\n"},
		{name: "killed", code: "print a\ndie SIGKILL", status: kernels.StatusDied, text: "a\n", cause: "the kernel was killed by SIGKILL", next: "killed by SIGKILL"},
		{name: "exits", code: "exit 3", status: kernels.StatusDied, cause: "status 3", next: "status 3"},
		{name: "out of memory", code: "oom", status: kernels.StatusDied, cause: "out of memory (limit 1 GiB)", next: "limit 1 GiB"},
		{name: "container ends", code: "crash 137", status: kernels.StatusDied, cause: "137", next: "generation 2"},
		{name: "stream breaks", code: "hangup\nprint a", status: kernels.StatusOK, text: "a\n"},
		{name: "foreign messages", code: "foreign x\norphan y\nbadjson\nprint a", status: kernels.StatusOK, text: "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, kernelstest.NewProvisioner, func(t *testing.T, m *Manager, _ *kernelstest.Provisioner) {
				e, r := execute(t, m, alice, "s", tt.code)
				if r.Status != tt.status {
					t.Errorf("status %q, want %q (%s %+v)", r.Status, tt.status, r.Reason, r.Death)
				}
				if tt.cause != "" && (r.Death == nil || !strings.Contains(r.Death.Cause, tt.cause)) {
					t.Errorf("death %+v, want %q", r.Death, tt.cause)
				}
				if got := text(t, e); !strings.Contains(got, tt.text) {
					t.Errorf("outputs %q, want %q", got, tt.text)
				}
				next, r := execute(t, m, alice, "s", "1+1")
				if r.Status != kernels.StatusOK || !strings.Contains(next.Preamble(), tt.next) || (tt.next == "") != (next.Preamble() == "") {
					t.Errorf("next cell: %v, %q", r.Status, next.Preamble())
				}
			})
		})
	}
}

func TestKernelDiesWhileNobodyCalls(t *testing.T) {
	inBubble(t, kernelstest.NewProvisioner, func(t *testing.T, m *Manager, p *kernelstest.Provisioner) {
		execute(t, m, alice, "s", "1+1")
		p.Kernel(p.Launched()[0].ID).Crash(kernels.ExitStatus{Code: -1, Signal: "SIGKILL", OOM: true})
		synctest.Wait()
		if info, err := m.Get(t.Context(), alice, "s"); err != nil || info.State != Died {
			t.Errorf("%+v %v", info, err)
		}
		e, _ := execute(t, m, alice, "s", "1+1")
		if !strings.Contains(e.Preamble(), "out of memory (limit 1 GiB)") {
			t.Errorf("preamble %q", e.Preamble())
		}
	})
}

func TestLadderOnTheWire(t *testing.T) {
	for _, tt := range []struct {
		code, rung string
		kept       bool
	}{
		{"wait", RungInterrupt, true}, {"child", RungKillChildren, true}, {"stubborn 24h", RungRestart, false},
	} {
		t.Run(tt.code, func(t *testing.T) {
			inBubble(t, kernelstest.NewProvisioner, func(t *testing.T, m *Manager, _ *kernelstest.Provisioner) {
				execute(t, m, alice, "s", "set x 7")
				e := start(t, m, alice, Request{SessionID: "s", Language: "python", Code: tt.code, Timeout: time.Second})
				if r := wait(t, e); !r.TimedOut || r.Interrupt.Rung != tt.rung || r.Interrupt.VariablesKept != tt.kept {
					t.Errorf("%+v", r)
				}
				if _, r := execute(t, m, alice, "s", "get x"); (r.Status == kernels.StatusOK) != tt.kept {
					t.Errorf("x: %v, kept must be %v", r.Status, tt.kept)
				}
			})
		})
	}
}

func TestRestartOnTheWire(t *testing.T) {
	inBubble(t, kernelstest.NewProvisioner, func(t *testing.T, m *Manager, p *kernelstest.Provisioner) {
		running := start(t, m, alice, python("s", "print a\nwait"))
		for range running.Outputs(t.Context()) {
			break // it runs
		}
		if info, err := m.Restart(t.Context(), alice, "s"); err != nil || info.Generation != 2 || info.State != Idle {
			t.Fatalf("%+v %v", info, err)
		}
		if r := wait(t, running); r.Status != kernels.StatusDied || !r.Death.Asked || !strings.Contains(r.Death.Cause, "on request") {
			t.Errorf("%+v %+v", r, r.Death)
		}
		e, _ := execute(t, m, alice, "s", "incarnation")
		if e.Generation() != 2 || len(p.Launched()) != 1 {
			t.Errorf("generation %d after %d launches", e.Generation(), len(p.Launched()))
		}
	})
}

func TestLateOutputOnTheWire(t *testing.T) {
	inBubble(t, kernelstest.NewProvisioner, func(t *testing.T, m *Manager, _ *kernelstest.Provisioner) {
		first, _ := execute(t, m, alice, "s", "late 1s from a thread\nprint now")
		time.Sleep(2 * time.Second)
		second, _ := execute(t, m, alice, "s", "print next")
		if got := text(t, first); got != "now\n" {
			t.Errorf("the first cell's outputs are %q", got)
		}
		late := second.Late()
		if len(late) != 1 || late[0].Number != 1 || !strings.Contains(late[0].Outputs[0].Text, "from a thread") {
			t.Errorf("late %+v", late)
		}
	})
}

func TestKernelThatFailsAtItsStartSaysWhy(t *testing.T) {
	broken := func() *kernelstest.Provisioner {
		p := kernelstest.NewProvisioner()
		p.Options = func(kernels.Spec) kernelstest.KernelOptions {
			return kernelstest.KernelOptions{FailStart: "ImportError: no module named ipykernel"}
		}
		return p
	}
	inBubble(t, broken, func(t *testing.T, m *Manager, p *kernelstest.Provisioner) {
		_, err := start(t, m, alice, python("s", "1+1")).Wait(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no module named ipykernel") || fault.Hint(err) == "" {
			t.Errorf("got %v", err)
		}
		p.Options = nil
		if _, r := execute(t, m, alice, "s", "1+1"); r.Status != kernels.StatusOK {
			t.Errorf("after it was mended: %v", r.Status)
		}
	})
}

// What is kept of a flood is bounded.
func TestFloodIsBounded(t *testing.T) {
	p := kernelstest.NewProvisioner()
	t.Cleanup(p.StopAll)
	m := newFaultyManager(t, p, func(c *Config) { c.RecordBytes = 1 << 20 })
	t.Cleanup(func() { _ = m.Shutdown(context.Background()) })
	e, r := execute(t, m, alice, "s", "print first\nflood 20000000\nprint last")
	if r.Status != kernels.StatusOK {
		t.Fatalf("%+v", r)
	}
	if size := e.record.size(); size > 2<<20 {
		t.Errorf("the record holds %d bytes", size)
	}
	if got := text(t, e); !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n") || !strings.Contains(got, "left out here") {
		t.Errorf("got %d bytes: %.40q … %q", len(got), got, got[len(got)-40:])
	}
}
