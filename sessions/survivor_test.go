package sessions_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// otherSlot is a provisioner in another slot than the one that has launched the kernels, on an engine that may be away.
type otherSlot struct {
	*sessions.FakeProvisioner
	away atomic.Bool
}

func (p *otherSlot) List(context.Context) ([]kernels.Ref, error) { return nil, p.engine() }

func (p *otherSlot) Attach(ctx context.Context, ref kernels.Ref) (kernels.Handle, error) {
	if err := p.engine(); err != nil {
		return nil, err
	}
	return p.FakeProvisioner.Attach(ctx, ref)
}

func (p *otherSlot) Launch(ctx context.Context, spec kernels.Spec) (kernels.Handle, error) {
	if err := p.engine(); err != nil {
		return nil, err
	}
	return p.FakeProvisioner.Launch(ctx, spec)
}

func (p *otherSlot) engine() error {
	if p.away.Load() {
		return fault.New(fault.Unavailable, "the engine does not answer").WithHint("start the engine")
	}
	return nil
}

// survivor starts the process that lives on when the first on the data folder was killed.
func (l *life) survivor() (*sessions.Manager, *otherSlot) {
	l.t.Helper()
	p := &otherSlot{FakeProvisioner: l.p}
	m, unknown := l.start(func(c *sessions.Config) { c.Provisioner = p })
	if len(unknown) != 0 {
		l.t.Errorf("it is to stop %v", unknown)
	}
	return m, p
}

func (l *life) running() int {
	refs, _ := l.p.List(l.t.Context())
	return len(refs)
}

// Whatever a process is first asked of a session whose process was killed, it goes on with its kernel.
func TestSurvivorTakesOver(t *testing.T) {
	ask := map[string]func(context.Context, *sessions.Manager) error{
		"a cell": func(ctx context.Context, m *sessions.Manager) error {
			_, err := m.Execute(ctx, sessions.Alice, sessions.Python("s", "x"))
			return err
		},
		"what it is": func(ctx context.Context, m *sessions.Manager) error {
			_, err := m.Get(ctx, sessions.Alice, "s")
			return err
		},
		"to be interrupted": func(ctx context.Context, m *sessions.Manager) error {
			report, err := m.Interrupt(ctx, sessions.Alice, "s")
			if err == nil && !report.Ran {
				return fault.New(fault.Internal, "nothing ran")
			}
			return err
		},
		"a cell's result": func(ctx context.Context, m *sessions.Manager) error {
			_, err := m.Execution(ctx, sessions.Alice, "s", 2)
			return err
		},
	}
	for name, first := range ask {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				runCell(t, m, "s", "x = 1")
				sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "sleep 1m"))
				time.Sleep(10 * time.Second)
				l.kill()
				m, _ = l.survivor()
				if err := first(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				e, _ := runCell(t, m, "s", "y")
				if e.Generation() != 1 || e.Preamble() != "" || l.running() != 1 {
					t.Errorf("it goes on with generation %d, told %q; %d kernels run", e.Generation(), e.Preamble(), l.running())
				}
			})
		})
	}
}

// A process that starts again in its place leaves alone what another has taken over meanwhile.
func TestKernelThatWasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "s", "x = 1")
		l.kill()
		survivor, _ := l.survivor()
		runCell(t, survivor, "s", "x = 2")

		again, unknown := l.start()
		if len(unknown) != 0 {
			t.Errorf("it is to stop %v", unknown)
		}
		e, err := again.Execute(t.Context(), sessions.Alice, sessions.Python("s", "x"))
		if err == nil {
			_, err = e.Wait(t.Context())
		}
		if fault.KindOf(err) != fault.Conflict {
			t.Errorf("a cell in the session of the other: %v", err)
		}
		if err := again.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); fault.KindOf(err) != fault.Conflict {
			t.Errorf("closing the session of the other: %v", err)
		}
		if e, _ := runCell(t, survivor, "s", "x = 3"); e.Generation() != 1 || e.Number() != 3 {
			t.Errorf("the survivor goes on with cell %d of generation %d", e.Number(), e.Generation())
		}
		shutdown(t, survivor)
	})
}

// A session that nobody has taken up is closed with its kernel, and with what its cells have printed.
func TestCloseWhatWasNotTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "steps 100"))
		time.Sleep(10 * time.Second)
		l.kill()
		time.Sleep(10 * time.Second)
		m, _ = l.survivor()
		if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil || l.running() != 0 {
			t.Errorf("closed: %v; %d kernels run", err, l.running())
		}
		e, got := recalled(t, m, "s", 1)
		if r := sessions.WaitFor(t, e); r.Status != kernels.StatusDied || !strings.Contains(r.Death.Cause, "was closed") || got != lines(21) {
			t.Errorf("its cell ended with %+v and %q", r, got)
		}
	})
}

// While nobody knows whether a kernel runs, no other takes its place, unless that is asked for.
func TestKernelOfAnEngineThatIsAway(t *testing.T) {
	tests := map[string]struct {
		then       func(t *testing.T, m *sessions.Manager, back func())
		generation int
		told       string
	}{
		"the next cell finds it": {func(t *testing.T, m *sessions.Manager, back func()) { back() }, 1, ""},
		"it is found later": {func(t *testing.T, m *sessions.Manager, back func()) {
			back()
			time.Sleep(time.Minute)
			if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || info.State != sessions.Idle {
				t.Errorf("it is %+v, %v", info, err)
			}
		}, 1, ""},
		"it is given up": {func(t *testing.T, m *sessions.Manager, back func()) {
			if _, err := m.Restart(t.Context(), sessions.Alice, "s"); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("restarted: %v", err)
			}
			back()
		}, 2, "restarted on request"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				runCell(t, m, "s", "x = 1")
				l.kill()
				m, engine := l.survivor()
				stopSweeping := sweep(m)
				engine.away.Store(true)
				e, err := m.Execute(t.Context(), sessions.Alice, sessions.Python("s", "x"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.Wait(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Hint(err), "start the engine") {
					t.Errorf("the cell ended with %v, %s", err, fault.Hint(err))
				}
				tt.then(t, m, func() { engine.away.Store(false) })
				next, _ := runCell(t, m, "s", "x")
				if next.Generation() != tt.generation || !strings.Contains(next.Preamble(), tt.told) || (tt.told == "") != (next.Preamble() == "") {
					t.Errorf("the next ran on generation %d and was told %q", next.Generation(), next.Preamble())
				}
				time.Sleep(6 * time.Minute)
				if n := l.running(); n != 1 {
					t.Errorf("%d kernels run", n)
				}
				stopSweeping()
			})
		})
	}
}

// A kernel that cannot be reached when its session is closed is stopped as soon as it can be.
func TestCloseWhileTheEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start()
		runCell(t, m, "s", "x = 1")
		l.kill()
		m, engine := l.survivor()
		defer sweep(m)()
		engine.away.Store(true)
		err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{})
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Hint(err), "as soon as it can be reached") {
			t.Errorf("closed: %v, %s", err, fault.Hint(err))
		}
		if _, err := m.Get(t.Context(), sessions.Alice, "s"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("the session is there: %v", err)
		}
		engine.away.Store(false)
		time.Sleep(6 * time.Minute)
		if n := l.running(); n != 0 {
			t.Errorf("%d kernels run", n)
		}
	})
}

// sweep has a Manager keep things swept until the returned function is called.
func sweep(m *sessions.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.KeepSwept(ctx) }()
	return func() { cancel(); <-done }
}
