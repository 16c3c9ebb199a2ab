package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

func testClaims(t *testing.T, p Processes) {
	first, second := p.Start(t), p.Start(t)
	ref := open(t, first, alice, "a").Ref
	commit(t, first, ref, cell(1, "x")...)
	if again := open(t, first, alice, "a"); again.Ref != ref || !again.Held {
		t.Errorf("opened again by its own process it is %+v", again)
	}
	_, err := second.Open(t.Context(), sessions.StoredSession{Owner: alice, ID: "a", Language: "python", Created: time.Now()})
	wantKind(t, "opening what another process has", err, fault.Conflict)
	wantKind(t, "changing it", second.Commit(t.Context(), ref, queued(2)), fault.Conflict)
	wantKind(t, "deleting it", second.Delete(t.Context(), alice, "a"), fault.Conflict)
	if seen, err := second.Session(t.Context(), alice, "a"); err != nil || !seen.Held {
		t.Errorf("seen by the other it is %+v, %v", seen, err)
	}
	wantText(t, second, ref, 1, "x")
	commit(t, first, ref, sessions.SessionClosed{Closed: time.Now(), Why: "done"})
	open(t, second, alice, "a")
	wantKind(t, "changing what was given up", first.Commit(t.Context(), ref, queued(2)), fault.Conflict)
	commit(t, second, ref, queued(2))
}

func testOwners(t *testing.T, p Processes) {
	s := p.Start(t)
	a, b := open(t, s, alice, "x").Ref, open(t, s, bob, "x").Ref
	other := open(t, s, sessions.Owner{Issuer: "https://b", Subject: "alice"}, "x").Ref
	if a == b || a == other || b == other {
		t.Fatal("sessions of several owners are one")
	}
	commit(t, s, a, cell(1, "alice")...)
	commit(t, s, b, cell(1, "bob")...)
	open(t, s, alice, "y")
	wantText(t, s, a, 1, "alice")
	wantText(t, s, b, 1, "bob")
	list, err := s.Sessions(t.Context(), bob)
	if err != nil || len(list) != 1 || list[0].Ref != b || list[0].Owner != bob || !list[0].Held {
		t.Errorf("bob's sessions are %+v, %v", list, err)
	}
	if list, _ := s.Sessions(t.Context(), alice); len(list) != 2 {
		t.Errorf("alice has %d sessions", len(list))
	}
	_, err = s.Session(t.Context(), bob, "y")
	wantKind(t, "bob looks for alice's", err, fault.NotFound)
}

func testConcurrent(t *testing.T, p Processes) {
	stores := []sessions.Store{p.Start(t), p.Start(t)}
	const writers, rounds = 8, 40
	refs := make([]sessions.SessionRef, writers)
	var wg sync.WaitGroup
	for w := range writers {
		s := stores[w%len(stores)]
		refs[w] = open(t, s, alice, fmt.Sprintf("s%d", w)).Ref
		wg.Go(func() {
			if err := s.Commit(t.Context(), refs[w], cell(1)...); err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
			for i := range rounds {
				if err := s.Commit(t.Context(), refs[w], printed(1, i, fmt.Sprintf("%d.%d;", w, i))); err != nil {
					t.Errorf("writer %d, round %d: %v", w, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		var want strings.Builder
		for i := range rounds {
			fmt.Fprintf(&want, "%d.%d;", w, i)
		}
		wantText(t, stores[0], refs[w], 1, want.String())
	}
}

func testReadWhileWritten(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	lines := bytes.Split(bytes.Repeat([]byte("x;"), 2500), []byte(";"))
	var first []string
	for i := range lines {
		first = append(first, fmt.Sprintf("%d\n", i))
	}
	commit(t, s, ref, cell(1, first...)...)
	next := 0
	for out, err := range s.Outputs(t.Context(), ref, 1, 0) {
		if err != nil || out.Index != next {
			t.Fatalf("output %d: %+v, %v", next, out.Index, err)
		}
		if next == 10 {
			commit(t, s, ref, printed(1, len(first), "the last\n"))
		}
		next++
	}
	if next < len(first) {
		t.Errorf("%d outputs were read of %d", next, len(first))
	}
}

func testContext(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := s.Commit(ctx, ref, queued(1)); err != nil && fault.KindOf(err) == fault.Unavailable {
		t.Errorf("a caller who gives up is told %v", err)
	}
	commit(t, s, ref, queued(2))
	if err := s.Health(); err != nil {
		t.Errorf("Health after a caller gave up: %v", err)
	}
}
