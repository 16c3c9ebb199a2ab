package sessions_test

import (
	"slices"
	"testing"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// Those that have ended are counted once each: as they were closed, or left by a server that was killed, but not those that run, those
// that never had a cell, and those that were for one.
func TestEnded(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	under := func(c *sessions.Config) { c.Profiles = map[string]sessions.Profile{"once": {Once: true}, "old": {}} }
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store, dir), under)
	for _, id := range []string{"closed", "again"} {
		runCell(t, m, id, "one")
		if err := m.Close(t.Context(), sessions.Alice, id, sessions.CloseOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []sessions.Request{{Profile: "once"}, {SessionID: "left", Profile: "old"}} {
		r.Language, r.Code = "python", "one"
		e, err := m.Execute(t.Context(), sessions.Alice, r)
		if err == nil {
			_, err = e.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	store.Kill()
	store.Fail(fault.New(fault.Unavailable, "killed"))

	m = sessions.NewTestManager(t, &sessions.FakeProvisioner{}, with(store.Another(), dir), func(c *sessions.Config) {
		c.Profiles = map[string]sessions.Profile{"once": {Once: true}} // and so nobody goes on with the session that was left
	})
	runCell(t, m, "again", "two")
	for limit, want := range map[int][]string{0: nil, 1: {"left"}, 9: {"left", "closed"}} {
		if n, last, err := m.Ended(t.Context(), sessions.Alice, limit); err != nil || n != 2 || !slices.Equal(last, want) {
			t.Errorf("%d have ended, the last %q, %v; want 2, %q", n, last, err, want)
		}
	}
	if n, last, err := m.Ended(t.Context(), sessions.Bob, 9); n != 0 || last != nil || err != nil {
		t.Errorf("somebody else's: %d, %q, %v", n, last, err)
	}
	bare := sessions.NewTestManager(t, &sessions.FakeProvisioner{})
	if n, _, err := bare.Ended(t.Context(), sessions.Alice, 9); n != 0 || err != nil {
		t.Errorf("without a store: %d, %v", n, err)
	}
}
