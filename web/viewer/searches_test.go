package viewer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// Nobody has more searches under way than his own share, nor all together more than there is room for: the next wait until one has ended,
// or for as long as they may.
func TestSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSearches()
		var ends []func()
		of := func(name string) sessions.Owner { return sessions.Owner{Issuer: "test", Subject: name} }
		for _, name := range []string{"ann", "ann", "bob", "bob"} {
			end, err := s.begin(t.Context(), of(name))
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if _, err := s.begin(t.Context(), of("ann")); fault.KindOf(err) != fault.Busy {
			t.Errorf("one more than each may have: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.begin(short, of("carl")); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("one that has waited in vain: %v", err)
		}
		time.AfterFunc(time.Hour, ends[0])
		before := time.Now()
		end, err := s.begin(t.Context(), of("carl"))
		if waited := time.Since(before); err != nil || waited != time.Hour {
			t.Errorf("one for which there is room after an hour has waited %s: %v", waited, err)
		}
		for _, end := range append(ends[1:], end) {
			end()
		}
		if len(s.seats) > 0 || len(s.by) > 0 {
			t.Errorf("when all have ended, %d are under way, %v", len(s.seats), s.by)
		}
	})
}
