package sessions

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// The grace of a rung is time in which the kernel can run: on a busy machine a cell that would stop costs no variables.
func TestLadderIsPatientWithStarvedKernels(t *testing.T) {
	for _, tt := range []struct {
		code, rung string
		starving   time.Duration // per cent
		took       time.Duration
	}{
		{"slow 12s", RungInterrupt, 80, 12 * time.Second},
		{"slow 12s", RungRestart, 0, 10 * time.Second},
		{"slow 12s", RungRestart, 20, 10 * time.Second},
		{"stubborn", RungRestart, 100, 50 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s at %d", tt.code, tt.starving), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTestManager(t, &fakeProvisioner{starving: tt.starving})
				defer m.Shutdown(context.Background())
				e := start(t, m, alice, python("s", tt.code))
				synctest.Wait()
				began := time.Now()
				e.Cancel()
				if res := wait(t, e); res.Interrupt.Rung != tt.rung || time.Since(began) != tt.took {
					t.Errorf("%q after %v", res.Interrupt.Rung, time.Since(began))
				}
			})
		})
	}
}

// A person decides himself whether a cell is worth all variables: one that only a restart would stop runs on, and can be stopped so.
func TestInterruptThatSparesVariables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		running := start(t, m, alice, python("s", "sleep 1h"))
		synctest.Wait()
		if got, err := m.TryInterrupt(t.Context(), alice, "s", 1); err != nil || got != (InterruptReport{Ran: true, Rung: RungInterrupt, VariablesKept: true, Caller: Person}) {
			t.Errorf("%+v, %v", got, err)
		}
		if res := wait(t, running); !res.Interrupt.Ran {
			t.Errorf("%+v", res.Interrupt)
		}
		stubborn := start(t, m, alice, python("s", "stubborn"))
		synctest.Wait()
		for range 2 {
			if got, err := m.TryInterrupt(t.Context(), alice, "s", 2); err != nil || got != (InterruptReport{Ran: true, RunsOn: true, VariablesKept: true, Caller: Person}) {
				t.Errorf("%+v, %v", got, err)
			}
			if phase, _ := stubborn.Phase(); phase != PhaseRunning {
				t.Errorf("it is %s", phase)
			}
		}
		if _, err := m.RestartBy(t.Context(), alice, "s", Person); err != nil {
			t.Error(err)
		}
		if res := wait(t, stubborn); res.Interrupt.RunsOn || stubborn.Generation() != 1 {
			t.Errorf("%+v in generation %d", res.Interrupt, stubborn.Generation())
		}
	})
}

// Who interrupts a cell that is being stopped already hears what that came to, also while its kernel is being restarted for it.
func TestInterruptOfACellThatIsBeingStopped(t *testing.T) {
	for _, later := range []time.Duration{time.Second, 10*time.Second + time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvisioner{restartTime: time.Second}
			m := newTestManager(t, p)
			defer m.Shutdown(context.Background())
			e := start(t, m, alice, python("s", "stubborn"))
			synctest.Wait()
			e.Cancel()
			time.Sleep(later)
			want := InterruptReport{Ran: true, Rung: RungRestart, Already: true}
			if got, err := m.Interrupt(t.Context(), alice, "s"); err != nil || got != want {
				t.Errorf("after %v: %+v, %v", later, got, err)
			}
			if got, err := m.Interrupt(t.Context(), alice, "s"); err != nil || got.Ran || got.Already {
				t.Errorf("when it has stopped: %+v, %v", got, err)
			}
			if res := wait(t, e); !res.Cancelled || res.Interrupt.Already {
				t.Errorf("%+v", res.Interrupt)
			}
		})
	}
}
