package sessions_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// sized is a store that says of its size what it is told to, and counts who asks.
type sized struct {
	*storetest.Memory
	asked int
	err   error
}

func (s *sized) Usage(context.Context) (sessions.Usage, error) {
	s.asked++
	return sessions.Usage{Sessions: s.asked}, s.err
}

// However often somebody asks how large the history is, the store counts now and then; an error of it is not remembered.
func TestUsageIsCountedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sized{Memory: storetest.NewMemory(), err: errors.New("no disk")}
		m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
		defer m.Shutdown(context.Background())
		if _, err := m.Usage(t.Context()); !errors.Is(err, store.err) {
			t.Errorf("the store's error: %v", err)
		}
		store.err = nil
		for range 10 { // two minutes
			if u, err := m.Usage(t.Context()); err != nil || u.Sessions != store.asked {
				t.Fatalf("%+v %v", u, err)
			}
			<-time.After(12 * time.Second)
		}
		if store.asked < 3 || store.asked > 5 {
			t.Errorf("the store was asked %d times", store.asked)
		}
	})
}
