package storetest

import (
	"fmt"
	"reflect"
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

// testUnended: Unended names a session's cells that have no end, however old they are.
func testUnended(t *testing.T, p Processes) {
	s := p.Start(t)
	ref := open(t, s, alice, "a").Ref
	changes := []sessions.Change{generation(1)}
	for n := 1; n <= 300; n++ {
		changes = append(changes, cell(n)...)
		if n != 1 && n != 150 {
			changes = append(changes, sessions.ExecutionEnded{Number: n, Ended: time.Now()})
		}
	}
	commit(t, s, ref, append(changes, queued(301))...)
	commit(t, s, open(t, s, bob, "a").Ref, append([]sessions.Change{generation(1)}, cell(1)...)...)
	left, err := s.Unended(t.Context(), ref)
	if err != nil || len(left) != 3 {
		t.Fatalf("there are %d, %v", len(left), err)
	}
	for i, want := range []int{1, 150, 301} {
		if one, err := s.Execution(t.Context(), ref, want); err != nil || !reflect.DeepEqual(left[i], one) {
			t.Errorf("%+v, %v; want %+v", left[i], err, one)
		}
	}
}

// testUsed: a session is used by its kernels' starts and its cells, not by what is written down of it later.
func testUsed(t *testing.T, p Processes) {
	s := p.Start(t)
	began := time.Now().Add(time.Hour)
	ref := open(t, s, alice, "a").Ref
	at := func(d time.Duration) time.Time { return began.Add(d) }
	q := queued(1)
	q.Queued = at(time.Second)
	for _, step := range []struct {
		change sessions.Change
		used   time.Duration
	}{
		{sessions.GenerationBegan{Number: 1, Started: began}, 0},
		{q, time.Second},
		{sessions.ExecutionBegan{Number: 1, Generation: 1, Started: at(2 * time.Second)}, 2 * time.Second},
		{sessions.ExecutionEnded{Number: 1, Ended: at(3 * time.Second)}, 3 * time.Second},
		{printed(1, 0, "late, and of now"), 3 * time.Second},
		{sessions.GenerationEnded{Number: 1, Ended: at(4 * time.Second)}, 3 * time.Second},
		{sessions.WorkspaceGiven{Name: "w"}, 3 * time.Second},
		{sessions.SessionClosed{Closed: at(5 * time.Second)}, 3 * time.Second},
	} {
		commit(t, s, ref, step.change)
		found, err := s.Session(t.Context(), alice, "a")
		if err != nil {
			t.Fatal(err)
		}
		sameTime(t, fmt.Sprintf("used after %T", step.change), found.Used, at(step.used))
	}
}

// testImages: Images names what sessions are made of, with their last use, until they are closed or deleted.
func testImages(t *testing.T, p Processes) {
	s := p.Start(t)
	began := time.Now().Add(time.Hour)
	made := func(o sessions.Owner, id, image string, used time.Duration, more ...sessions.Change) {
		t.Helper()
		found, err := s.Open(t.Context(), sessions.StoredSession{Owner: o, ID: id, Language: "python", Image: image, Created: began})
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, found.Ref, append([]sessions.Change{sessions.GenerationBegan{Number: 1, Started: began.Add(used)}}, more...)...)
	}
	made(alice, "late", "shared", 2*time.Second)
	made(bob, "early", "shared", time.Second, sessions.GenerationEnded{Number: 1, Ended: began.Add(time.Minute)})
	made(bob, "other", "his", 3*time.Second)
	made(alice, "plain", "", 0)
	made(alice, "closed", "of closed", 0, sessions.SessionClosed{Closed: began})
	made(alice, "deleted", "of deleted", 0)
	if err := s.Delete(t.Context(), alice, "deleted"); err != nil {
		t.Fatal(err)
	}
	got, err := s.Images(t.Context())
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	sameTime(t, "shared by two", got["shared"], began.Add(2*time.Second))
	sameTime(t, "one's own", got["his"], began.Add(3*time.Second))
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

// testClosed: Unclosed and Closed divide an owner's sessions, those that were never closed by a process that was killed among the first.
func testClosed(t *testing.T, p Processes) {
	first := p.Start(t)
	base := time.Now()
	for i, id := range []string{"a", "b", `c"\`, "d"} {
		used := base.Add(time.Duration(i+1) * time.Minute)
		began := generation(1)
		began.Started = used
		commit(t, first, open(t, first, alice, id).Ref, began, queued(1), sessions.SessionClosed{Closed: used})
	}
	commit(t, first, open(t, first, alice, "no cell").Ref, sessions.SessionClosed{Closed: base})
	commit(t, first, open(t, first, bob, "bob's").Ref, queued(1), sessions.SessionClosed{Closed: base})
	commit(t, first, open(t, first, alice, "left").Ref, queued(1))
	open(t, first, alice, "d") // again
	once, err := first.Open(t.Context(), sessions.StoredSession{Owner: alice, ID: "once", Language: "python", Profile: "once", Created: base})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, first, once.Ref, queued(1), sessions.SessionClosed{Closed: base})
	for _, s := range []sessions.Store{first, p.Start(t)} {
		wantClosed(t, s, sessions.Exclusion{}, 2, 4, `c"\`, "b")
		wantClosed(t, s, sessions.Exclusion{Profiles: []string{"once"}}, 9, 3, `c"\`, "b", "a")
		wantClosed(t, s, sessions.Exclusion{IDs: []string{`c"\`, "left"}, Profiles: []string{"once"}}, 9, 2, "b", "a")
		wantClosed(t, s, sessions.Exclusion{}, 0, 4)
		open, err := s.Unclosed(t.Context(), alice)
		if err != nil || len(open) != 2 || open[0].ID != "d" || open[1].ID != "left" || !open[0].Held || open[1].Executions != 1 {
			t.Errorf("not closed: %+v, %v", open, err)
		}
	}
}

func wantClosed(t *testing.T, s sessions.Store, without sessions.Exclusion, limit, want int, last ...string) {
	t.Helper()
	n, named, err := s.Closed(t.Context(), alice, without, limit)
	var ids []string
	for _, name := range named {
		ids = append(ids, name.ID)
	}
	if err != nil || n != want || !slices.Equal(ids, last) {
		t.Errorf("without %+v there are %d, the last %q (%v), want %d, %q", without, n, ids, err, want, last)
	}
	if len(named) > 0 && named[0].ID != "once" && named[0].Used.Before(time.Now()) {
		t.Errorf("%s was used at %v", named[0].ID, named[0].Used)
	}
}
