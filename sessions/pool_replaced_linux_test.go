package sessions

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gone names what this process holds open below a folder that has no name any more.
func gone(t *testing.T, below string) (names []string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, below) && strings.HasSuffix(name, " (deleted)") {
			names = append(names, name)
		}
	}
	return names
}

// What a hand-over takes the names of is held while its cell runs, and given back when the session rests or ends.
func TestWhatAHandOverReplacesIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pooledManager(t, &fakeProvisioner{}, 1)
		defer m.Shutdown(context.Background())
		if _, _, err := m.WriteFile(t.Context(), alice, "s", "a.txt", nil); err != nil {
			t.Fatal(err)
		}
		old, _ := m.workspaces.Find(key{alice, "s"}.workspace())
		e := start(t, m, alice, python("s", "sleep 10s"))
		time.Sleep(time.Second)
		held := gone(t, workspacesOf(m))
		if got := strings.Join(held, "; "); len(held) != 2 || !strings.Contains(got, old+" ") || !strings.Contains(got, ".json ") {
			t.Errorf("held while the cell runs: %s", got)
		}
		wait(t, e)
		time.Sleep(restBefore)
		synctest.Wait()
		if held := gone(t, workspacesOf(m)); len(held) > 0 {
			t.Errorf("held by a session that rests: %v", held)
		}
		time.Sleep(time.Minute) // the pool is filled
		if _, err := m.Restart(t.Context(), alice, "s"); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
			t.Error(err)
		}
		if held := gone(t, workspacesOf(m)); len(held) > 0 {
			t.Errorf("held by a session that has ended: %v", held)
		}
	})
}
