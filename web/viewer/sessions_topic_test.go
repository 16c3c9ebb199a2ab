package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
	"cellblock/web/viewer/live"
)

// The list tells of the visitor's sessions and of what each uses, and of nobody else's.
func TestListIsTold(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "one", "print a")
	p.ran("ann", "two", "print b")
	p.ran("bob", "his", "print c")
	ann := p.signIn("ann", all...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := map[string][]string{}
	err := p.viewer.sessionsTopic(ann.who)(ctx, "", func(e live.Event) error {
		if data, ok := e.Data.(listed); ok && !slices.Contains(told[e.Name], data.ID) {
			told[e.Name] = append(told[e.Name], data.ID)
		}
		if len(told["usage"]) == 2 {
			return errEnough
		}
		return nil
	})
	slices.Sort(told["row"])
	slices.Sort(told["usage"])
	if want := []string{"one", "two"}; !errors.Is(err, errEnough) || !slices.Equal(told["row"], want) || !slices.Equal(told["usage"], want) {
		t.Errorf("told %v, %v", told, err)
	}
}

// The page of a session that somebody else closes is told why, as one that is opened later is.
func TestWhyASessionEndedIsTold(t *testing.T) {
	p := newPages(t, func(c *sessions.Config) { c.Store = storetest.NewMemory() })
	p.ran("ann", "s", "print a")
	ann := p.signIn("ann", all...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	closed := make(chan error, 1)
	var last sessionState
	err := p.viewer.stateTopic(ann.who, "s")(ctx, "", func(e live.Event) error {
		if last == (sessionState{}) {
			go func() { closed <- p.sessions.Close(ctx, ann.who.owner, "s", sessions.CloseOptions{Operator: true}) }()
		}
		if last = e.Data.(sessionState); strings.Contains(last.Lost, "by an operator") {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) || last.State != sessions.Closed {
		t.Errorf("told %+v, %v", last, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if page := ann.want(200, "GET", "/s/s", nil); !strings.Contains(page, "the session was stopped by an operator of the server</span>") {
		t.Errorf("the page is %s", page)
	}
}

// The page of a session that is deleted is told that it is gone, and hears of the next one of its name.
func TestADeletedSessionIsToldToBeGone(t *testing.T) {
	p := newPages(t, func(c *sessions.Config) { c.Store = storetest.NewMemory() })
	p.ran("ann", "s", "print a")
	ann := p.signIn("ann", all...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := make(chan sessionState, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- p.viewer.stateTopic(ann.who, "s")(ctx, "", func(e live.Event) error {
			told <- e.Data.(sessionState)
			return nil
		})
	}()
	until := func(what string, is func(sessionState) bool) {
		t.Helper()
		for {
			select {
			case now := <-told:
				if is(now) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("it was not told: %s", what)
			}
		}
	}
	var began string
	until("the session", func(s sessionState) bool { began = s.Began; return s.State == sessions.Idle && began != "" })
	ann.want(http.StatusOK, "POST", "/s/s/close?files=delete", nil)
	until("its end", func(s sessionState) bool { return s == gone })
	p.ran("ann", "s", "print b")
	until("the next", func(s sessionState) bool { return s.State == sessions.Idle && s.Began != "" && s.Began != began })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A session that the store cannot tell of now is not said to be gone.
func TestASessionIsNotGoneWhileTheStoreFails(t *testing.T) {
	store := &failingStore{Store: storetest.NewMemory()}
	p := newPages(t, func(c *sessions.Config) { c.Store = store })
	p.ran("ann", "s", "print a")
	ann := p.signIn("ann", all...)
	ann.want(http.StatusOK, "POST", "/s/s/close", nil)
	store.fails.Store(true)
	for name, topic := range map[string]live.Topic{"state": p.viewer.stateTopic(ann.who, "s"), "desk": p.viewer.deskTopic(ann.who, "s")} {
		err := topic(t.Context(), "", func(e live.Event) error { return fmt.Errorf("it is told to be %+v", e.Data) })
		if fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failingStore can be told to find no session, because it fails.
type failingStore struct {
	sessions.Store
	fails atomic.Bool
}

func (s *failingStore) Session(ctx context.Context, o sessions.Owner, id string) (sessions.StoredSession, error) {
	if s.fails.Load() {
		return sessions.StoredSession{}, fault.New(fault.Unavailable, "the history cannot be read now")
	}
	return s.Store.Session(ctx, o, id)
}

// That a kernel was culled is said in plain words, live and in pages.
func TestCulledInPlainWords(t *testing.T) {
	p := newPages(t, func(c *sessions.Config) { c.IdleTimeout = 10 * time.Millisecond })
	p.ran("ann", "s", "print a")
	ann := p.signIn("ann", all...)
	var last sessionState
	err := p.viewer.stateTopic(ann.who, "s")(t.Context(), "", func(e live.Event) error {
		if last = e.Data.(sessionState); last.State == sessions.Culled {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) || last.Plain != "stopped" || !strings.HasPrefix(last.Lost, "it was stopped because no cell had run for ") {
		t.Errorf("told %+v, %v", last, err)
	}
	for _, path := range []string{"/", "/s/s"} {
		if page := ann.want(200, "GET", path, nil); !regexp.MustCompile(`<span class="state culled"[^>]*>stopped</span>`).MatchString(page) {
			t.Errorf("%s is %s", path, page)
		}
	}
}

// After a restart of the server the list and the pages say as before why a session has no kernel or is closed, and the list what ran last
// in each.
func TestWhatWasIsToldAfterARestart(t *testing.T) {
	store, dir := storetest.NewMemory(), t.TempDir()
	p := newPages(t, func(c *sessions.Config) { c.Store, c.DataDir = store, dir })
	p.ran("ann", "dead", "die")
	p.ran("ann", "closed", "print a")
	ann := p.signIn("ann", all...)
	if err := p.sessions.Close(t.Context(), ann.who.owner, "closed", sessions.CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := p.viewer.rows(t.Context(), ann.who)
	if err != nil || len(before) != 2 || before[0].Why == "" || before[1].Why == "" {
		t.Fatalf("the list was %+v, %v", before, err)
	}
	if n, err := p.sessions.Leave(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d kernels are left, %v", n, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	p = newPages(t, func(c *sessions.Config) { c.Store, c.DataDir = store.Another(), dir })
	ann = p.signIn("ann", all...)
	after, err := p.viewer.rows(t.Context(), ann.who)
	if err != nil || len(after) != 2 {
		t.Fatalf("the list is %+v, %v", after, err)
	}
	for i, row := range after {
		was := before[i]
		if row.ID != was.ID || row.State != was.State || row.Why != was.Why || row.Code != was.Code || row.Caller != "model" {
			t.Errorf("the row is %+v, was %+v", row, was)
		}
		if page := ann.want(200, "GET", "/s/"+row.ID, nil); !strings.Contains(page, was.Why+"</span>") {
			t.Errorf("the page of %s does not say %q", row.ID, was.Why)
		}
	}
}
