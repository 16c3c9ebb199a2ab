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
