package sessions_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// A session is as old as the first that had its id, in whatever image it runs by now.
func TestARemadeSessionKeepsItsAge(t *testing.T) {
	for name, store := range map[string]sessions.Store{"kept": storetest.NewMemory(), "in memory": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sessions.NewTestManager(t, &sessions.FakeProvisioner{}, choices, func(c *sessions.Config) { c.Store = store })
				defer m.Shutdown(context.Background())
				sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x")))
				began := createdOf(t, m)
				time.Sleep(time.Hour)
				for _, image := range []string{"mine", "other"} {
					info, _, err := m.Remake(t.Context(), sessions.Alice, "s", image, "")
					if err != nil || !info.Created.Equal(began) || !createdOf(t, m).Equal(began) {
						t.Errorf("in %s it began at %v, not %v; %v", image, info.Created, began, err)
					}
				}
			})
		})
	}
}

// So is one that is used again while it ends; not if nothing of the one before is kept.
func TestAgeOfASessionThatComesWhileAnotherEnds(t *testing.T) {
	for name, deleted := range map[string]bool{"files kept": false, "files deleted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &sessions.FakeProvisioner{}
				p.StopsIn(2 * time.Second)
				m := sessions.NewTestManager(t, p, choices, func(c *sessions.Config) { c.Store = storetest.NewMemory() })
				defer m.Shutdown(context.Background())
				sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x")))
				began := createdOf(t, m)
				time.Sleep(time.Minute) // it has a kernel still
				closed := make(chan error, 1)
				go func() {
					closed <- m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{DeleteFiles: deleted})
				}()
				synctest.Wait()
				next := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x"))
				if at := createdOf(t, m); len(closed) > 0 || at.Equal(began) == deleted {
					t.Errorf("while the one before ends, which began at %v, it began at %v", began, at)
				}
				sessions.WaitFor(t, next)
				if err := <-closed; err != nil {
					t.Fatal(err)
				}
				account, err := m.Account(t.Context(), sessions.Alice, "s")
				if err != nil || account.Created.Equal(began) == deleted {
					t.Errorf("began at %v, the one before at %v; %v", account.Created, began, err)
				}
			})
		})
	}
}

func createdOf(t *testing.T, m *sessions.Manager) time.Time {
	t.Helper()
	info, err := m.Get(t.Context(), sessions.Alice, "s")
	if err != nil {
		t.Fatal(err)
	}
	return info.Created
}
