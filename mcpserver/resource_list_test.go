package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// However many sessions there were, page by page each is listed once; list_sessions tells that there are more than run.
func TestAllSessionsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		w := newWorld(t, func(c *sessions.Config) { c.Store = store })
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		const ended = 2*maxListed + 1
		for i := range ended {
			ref, err := store.Open(t.Context(), sessions.StoredSession{Owner: w.owner, ID: fmt.Sprintf("e%d", i), Language: "python", Created: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			err = store.Commit(t.Context(), ref.Ref, sessions.ExecutionQueued{Number: 1, MsgID: fmt.Sprint(i), Queued: time.Now()},
				sessions.ExecutionBegan{Number: 1, Started: time.Now()}, sessions.SessionClosed{Closed: time.Now(), Why: "the session was closed"})
			if err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 { // some were used at the same moment
				time.Sleep(time.Second)
			}
		}
		w.run("live", "print a")
		seen := map[string]int{}
		for cursor, pages := "", 1; ; pages++ {
			raw, _ := w.request(t.Context(), "resources/list", map[string]any{"cursor": cursor})
			var page struct {
				Resources  []struct{ URI string }
				NextCursor string
			}
			if err := json.Unmarshal(raw, &page); err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Resources {
				seen[r.URI]++
			}
			if cursor = page.NextCursor; cursor == "" {
				if pages != 3 {
					t.Errorf("%d pages", pages)
				}
				break
			}
		}
		if len(seen) != ended+2 || seen[notebookURI("live")] != 1 || seen[notebookURI("e0")] != 1 {
			t.Errorf("%d are listed: %v", len(seen), seen)
		}
		for uri, n := range seen {
			if n != 1 {
				t.Errorf("%s is listed %d times", uri, n)
			}
		}
		said := w.call("list_sessions", nil).String()
		if !strings.HasPrefix(said, "live ·") || !strings.Contains(said, "[201 more ended, last e") {
			t.Error(said)
		}
		raw, _ := w.request(t.Context(), "resources/list", map[string]any{"cursor": "bm9uZQ=="})
		expectText(t, string(raw), `"resources":[]`)
	})
}
