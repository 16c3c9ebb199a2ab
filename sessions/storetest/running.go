package storetest

import (
	"slices"
	"testing"
	"time"

	"cellblock/sessions"
)

// testRunning: Running names each session's newest kernel while nobody has written down its end, and says whether a
// process that lives holds it.
func testRunning(t *testing.T, p Processes) {
	first := p.Start(t)
	ended := sessions.GenerationEnded{Number: 1, Ended: time.Now(), Why: "it was restarted"}
	commit(t, first, open(t, first, alice, "runs").Ref, generation(1), ended, generation(2))
	commit(t, first, open(t, first, bob, "runs").Ref, generation(1))
	commit(t, first, open(t, first, alice, "none").Ref)
	commit(t, first, open(t, first, alice, "died").Ref, generation(1), ended)
	commit(t, first, open(t, first, alice, "closed").Ref, generation(1), sessions.SessionClosed{Closed: time.Now()})
	commit(t, first, open(t, first, alice, "deleted").Ref, generation(1))
	if err := first.Delete(t.Context(), alice, "deleted"); err != nil {
		t.Fatal(err)
	}
	wantRunning(t, first, true)
	p.Kill(t, first)
	wantRunning(t, p.Start(t), false)
}

func wantRunning(t *testing.T, s sessions.Store, held bool) {
	t.Helper()
	all, err := s.Running(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range all {
		got = append(got, k.Session.Owner.Subject+" "+k.Session.ID)
		want := 1
		if k.Session.Owner == alice {
			want = 2
		}
		if k.Session.Held != held || k.Generation.Number != want || k.Generation.Ref.KernelID != generation(want).Ref.KernelID {
			t.Errorf("%s is told as %+v %+v", k.Session.ID, k.Session, k.Generation)
		}
		if described, err := s.Session(t.Context(), k.Session.Owner, k.Session.ID); err != nil || described != k.Session {
			t.Errorf("Session says %+v, %v; Running %+v", described, err, k.Session)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"alice runs", "bob runs"}) {
		t.Errorf("running are %q", got)
	}
}
