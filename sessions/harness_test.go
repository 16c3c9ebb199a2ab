package sessions

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"cellblock/kernels"
)

var (
	alice = Owner{Issuer: "test", Subject: "alice"}
	bob   = Owner{Issuer: "test", Subject: "bob"}
)

// newTestManager returns a Manager over the fake. The test ends with all sessions gone and no kernel left.
func newTestManager(t *testing.T, p *fakeProvisioner, change ...func(*Config)) *Manager {
	t.Helper()
	cfg := Config{
		Provisioner: p, DataDir: t.TempDir(),
		Runtimes: map[string]Runtime{"python": {Kernelspec: kernels.Kernelspec{Name: "python3"}}, "bash": {}},
		Profiles: map[string]Profile{DefaultProfile: {Limits: kernels.Limits{Memory: 2 << 30}}},
		Logger:   slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.connect = p.connect
	p.managers.Add(1)
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		// One whose process was killed for the others still launches a kernel for what waits when it loses its own.
		if n := p.live.Load(); p.managers.Add(-1) == 0 && n != 0 {
			t.Errorf("%d kernels are left", n)
		}
	})
	return m
}

func python(id, code string) Request { return Request{SessionID: id, Language: "python", Code: code} }

// start is Execute that must be accepted.
func start(t *testing.T, m *Manager, o Owner, r Request) *Execution {
	t.Helper()
	e, err := m.Execute(t.Context(), o, r)
	if err != nil {
		t.Fatalf("Execute(%q): %v", clip(r.Code, 40), err)
	}
	return e
}

// wait is Wait for a cell that must have run.
func wait(t *testing.T, e *Execution) Result {
	t.Helper()
	r, err := e.Wait(t.Context())
	if err != nil {
		t.Fatalf("cell %d did not run: %v", e.Number(), err)
	}
	return r
}

func execute(t *testing.T, m *Manager, o Owner, id, code string) (*Execution, Result) {
	t.Helper()
	e := start(t, m, o, python(id, code))
	return e, wait(t, e)
}

func text(t *testing.T, e *Execution) string {
	t.Helper()
	var b strings.Builder
	for out, err := range e.Outputs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if out.Notice != nil {
			b.WriteString(out.Notice.String())
		}
		b.WriteString(out.Text)
	}
	return b.String()
}
