package sessions

import (
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
)

// What a session uses is told while its cell runs, too, and to nobody else but its owner.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		e := start(t, m, alice, python("s", "sleep 1h"))
		synctest.Wait()
		for range 3 {
			if _, err := m.Samples(t.Context(), alice, "s"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(SampleEvery / 2)
		}
		got, err := m.Samples(t.Context(), alice, "s")
		if err != nil || len(got) != 2 || got[0].CPU != 0 || got[1].CPU != 0.5 || got[1].Memory != 64<<20 {
			t.Errorf("%+v %v", got, err)
		}
		if _, err := m.Samples(t.Context(), bob, "s"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("another owner: %v", err)
		}
		for range maxSamples {
			time.Sleep(SampleEvery)
			got, _ = m.Samples(t.Context(), alice, "s")
		}
		if len(got) != maxSamples {
			t.Errorf("%d samples", len(got))
		}
		e.Cancel()
	})
}

// A kernel that does not answer, or is no more, has no new sample; nobody waits for it for long.
func TestSamplesOfASilentKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		execute(t, m, alice, "s", "x")
		p.last().frozen.Store(true)
		began := time.Now()
		got, err := m.Samples(t.Context(), alice, "s")
		if err != nil || len(got) != 0 || time.Since(began) > sampleTime {
			t.Errorf("%v %v after %v", got, err, time.Since(began))
		}
		p.last().frozen.Store(false)
		execute(t, m, alice, "s", "die")
		if got, err := m.Samples(t.Context(), alice, "s"); err != nil || len(got) != 0 {
			t.Errorf("%v %v", got, err)
		}
	})
}
