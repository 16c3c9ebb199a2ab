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
