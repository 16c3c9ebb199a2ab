package sessions_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// The shim keeps late output, as it keeps any other, until it is in the store, or the store cannot take it. So
// it is not lost with a server that is killed in between.
func TestLateOutputIsKeptUntilItIsSaved(t *testing.T) {
	unavailable := fault.New(fault.Unavailable, "the disk is full")
	conflict := fault.New(fault.Conflict, "the session was taken over")
	for name, answer := range map[string]error{"saved": nil, "in memory only": unavailable, "given up": conflict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, store := kernelstest.NewProvisioner(), storetest.NewMemory()
				defer p.StopAll()
				m := newOnTheWire(t, p, store)
				defer shutdown(t, m)
				e, _ := runCell(t, m, "s", "late 1s first\nlate 2s second")
				k := p.Kernel(p.Launched()[0].ID)
				synctest.Wait()
				release := store.Block()
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if texts := lateTexts(e); texts != "first\nsecond\n" {
					t.Fatalf("late output is %q", texts)
				}
				if k.Acked() > k.Last()-2 {
					t.Errorf("%d of %d are acknowledged before they are saved", k.Acked(), k.Last())
				}
				store.Fail(answer)
				release()
				time.Sleep(time.Minute) // a store that fails is tried again
				synctest.Wait()
				if k.Acked() != k.Last() {
					t.Errorf("%d of %d are acknowledged in the end", k.Acked(), k.Last())
				}
				store.Fail(nil)
			})
		})
	}
}

// What a cell has put out before its end comes first, also where it is still to be read when its threads print on.
func TestLateOutputBehindTheCellsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := kernelstest.NewProvisioner(), storetest.NewMemory()
		defer p.StopAll()
		m := newOnTheWire(t, p, store)
		defer shutdown(t, m)
		runCell(t, m, "s", "print first")
		release := store.Block()
		e, err := m.Execute(t.Context(), sessions.Alice, sessions.Python("s", "flood 14000000\nprint last\nlate 1s after\nlate 2s the end"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // which the store is waited for behind the flood
		release()
		if _, err := e.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var texts []string
		for out := range e.SoFar(0) {
			if len(out.Text) < 100 {
				texts = append(texts, out.Text)
			}
		}
		if got := strings.Join(texts, ""); got != "last\nafter\nthe end\n" {
			t.Errorf("it put out %q", got)
		}
		if k := p.Kernel(p.Launched()[0].ID); k.Acked() != k.Last() {
			t.Errorf("%d of %d are acknowledged in the end", k.Acked(), k.Last())
		}
	})
}

// newOnTheWire returns a Manager over scripted kernels that speak the wire, with the real client between.
func newOnTheWire(t *testing.T, p *kernelstest.Provisioner, store sessions.Store) *sessions.Manager {
	t.Helper()
	m, err := sessions.New(sessions.Config{
		Provisioner: p, DataDir: t.TempDir(), Runtimes: map[string]sessions.Runtime{"python": {}}, Store: store,
		Profiles: map[string]sessions.Profile{sessions.DefaultProfile: {Limits: kernels.Limits{Memory: 1 << 30}}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// lateTexts joins a cell's late output.
func lateTexts(e *sessions.Execution) string {
	var b strings.Builder
	for _, out := range e.LateFrom(0) {
		b.WriteString(out.Output.Text)
	}
	return b.String()
}
