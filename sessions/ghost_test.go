package sessions_test

import (
	"context"
	"testing"
	"testing/synctest"

	"cellblock/sessions"
)

// heldList is a store whose list of sessions is out of date by the time it arrives.
type heldList struct {
	sessions.Store
	read, goOn chan struct{}
}

func (s *heldList) Unclosed(ctx context.Context, o sessions.Owner) ([]sessions.StoredSession, error) {
	all, err := s.Store.Unclosed(ctx, o)
	close(s.read)
	<-s.goOn
	return all, err
}

// A session of an earlier server that is closed while a list is being made of what the store has does not come back as its own ghost.
func TestClosedWhileAListIsMade(t *testing.T) {
	for name, options := range map[string]sessions.CloseOptions{"files kept": {}, "files deleted": {DeleteFiles: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start()
				runCell(t, m, "s", "x = 1")
				l.leave(m)
				held := &heldList{read: make(chan struct{}), goOn: make(chan struct{})}
				m = l.begin(func(c *sessions.Config) { held.Store, c.Store = c.Store, held })
				listed := make(chan []sessions.Info)
				go func() {
					infos, _ := m.List(t.Context(), sessions.Alice)
					listed <- infos
				}()
				<-held.read
				if err := m.Close(t.Context(), sessions.Alice, "s", options); err != nil {
					t.Fatal(err)
				}
				close(held.goOn)
				if infos := <-listed; len(infos) != 0 {
					t.Errorf("it is back: %+v", infos)
				}
				past, err := held.Session(t.Context(), sessions.Alice, "s")
				if gone := err != nil; gone != options.DeleteFiles || !gone && past.Closed.IsZero() {
					t.Errorf("the store has %+v, %v", past, err)
				}
			})
		})
	}
}
