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

// stuck is a store that counts until it is let go.
type stuck struct {
	*storetest.Memory
	counts, goOn chan struct{}
}

func (s *stuck) Usage(context.Context) (sessions.Usage, error) {
	close(s.counts)
	<-s.goOn
	return sessions.Usage{Sessions: 7}, nil
}

// Who asks while the store counts for somebody else gives up when his own time is over.
func TestUsageDoesNotHoldOthersUp(t *testing.T) {
	store := &stuck{storetest.NewMemory(), make(chan struct{}), make(chan struct{})}
	m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, func(c *sessions.Config) { c.Store = store })
	defer m.Shutdown(context.Background())
	first := make(chan sessions.Usage)
	go func() {
		u, _ := m.Usage(context.Background())
		first <- u
	}()
	<-store.counts
	over := errors.New("the time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := m.Usage(ctx); !errors.Is(err, over) {
		t.Errorf("the second: %v", err)
	}
	close(store.goOn)
	if u := <-first; u.Sessions != 7 {
		t.Errorf("the first: %+v", u)
	}
	if u, err := m.Usage(t.Context()); u.Sessions != 7 || err != nil { // counted once: stuck would panic
		t.Errorf("the third: %+v %v", u, err)
	}
}
