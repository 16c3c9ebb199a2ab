package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// Of the kernels that an earlier process has left, those that belong to a session go on with it, and the others
// are stopped.
func TestRecoverTakesUpSessionsAndStopsTheRest(t *testing.T) {
	p := kernelstest.NewProvisioner()
	defer p.Close()
	defer p.StopAll()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	store, dir := storetest.NewMemory(), t.TempDir()
	first := appOver(t, p, store, dir)
	if e := cellIn(t, first, "print on"); e.Generation() != 1 {
		t.Fatalf("generation %d", e.Generation())
	}
	for _, id := range []string{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"} {
		if _, err := p.Launch(ctx, kernels.Spec{ID: id, Kernelspec: kernelstest.Python, Workspace: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
	}
	first.keep = true
	if err := first.endSessions(ctx); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	second := appOver(t, p, store.Another(), dir)
	second.recover(ctx)
	waitFor(t, ctx, func() bool {
		left, err := p.List(ctx)
		return err == nil && len(left) == 1
	})
	if e := cellIn(t, second, "print on"); e.Generation() != 1 || e.Number() != 2 || e.Preamble() != "" {
		t.Errorf("cell %d ran on generation %d and was told %q", e.Number(), e.Generation(), e.Preamble())
	}
	second.swept()
	if err := second.endSessions(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := p.List(ctx); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func appOver(t *testing.T, p kernels.Provisioner, store sessions.Store, dir string) *app {
	t.Helper()
	m, err := sessions.New(sessions.Config{
		Provisioner: p, Store: store, DataDir: dir, Logger: slog.New(slog.DiscardHandler),
		Runtimes: map[string]sessions.Runtime{"python": {Kernelspec: kernelstest.Python}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &app{logger: slog.New(slog.DiscardHandler), backend: &backend{Provisioner: p}, sessions: m}
}

// cellIn runs a cell in the app's one session.
func cellIn(t *testing.T, a *app, code string) *sessions.Execution {
	t.Helper()
	e, err := a.sessions.Execute(t.Context(), localOwner, sessions.Request{SessionID: "s", Code: code})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// waitFor asks again until something is so.
func waitFor(t *testing.T, ctx context.Context, so func() bool) {
	t.Helper()
	for tick := time.Tick(5 * time.Millisecond); !so(); {
		select {
		case <-tick:
		case <-ctx.Done():
			t.Fatal("it did not become so in time")
		}
	}
}
