package history

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// folder is a data folder and the processes on it: stores with slots of their own, of which the lowest free is taken next.
type folder struct {
	path string

	mu    sync.Mutex
	slots map[string]*Store // nil for a free one
}

func newFolder(t *testing.T) *folder { return &folder{path: t.TempDir(), slots: map[string]*Store{}} }

func (f *folder) alive(slot string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[slot] != nil
}

func (f *folder) Start(t *testing.T) sessions.Store { return f.start(t) }

func (f *folder) start(t *testing.T) *Store {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for ; f.slots[fmt.Sprint(n)] != nil; n++ {
	}
	slot := fmt.Sprint(n)
	s, err := Open(context.Background(), Options{
		Folder: f.path, Slot: slot, Alive: f.alive, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	f.slots[slot] = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// Kill leaves the claims of a store as they are, and its slot free. What a real kill does is in kill_test.go.
func (f *folder) Kill(t *testing.T, s sessions.Store) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for slot, other := range f.slots {
		if other == s {
			f.slots[slot] = nil
		}
	}
	store := s.(*Store)
	store.closed.Store(true)
	store.writer.stop()
	store.tidying.Wait()
	store.keeping.Wait()
	if err := store.writer.close("nobody"); err != nil {
		t.Error(err)
	}
	if err := store.read.Close(); err != nil {
		t.Error(err)
	}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Processes { return newFolder(t) })
}
