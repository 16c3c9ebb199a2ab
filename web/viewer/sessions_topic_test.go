package viewer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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
