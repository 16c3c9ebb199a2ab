package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
)

// everyVersion is every revision that a client of ours may speak.
var everyVersion = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

func TestEveryRevisionIsServed(t *testing.T) {
	w := newWorld(t)
	for _, version := range everyVersion {
		t.Run(version, func(t *testing.T) {
			u := w.user("ann", version)
			if got := u.post(u.message("l", "tools/list", nil)); got.status != 200 || len(got.last().Result.Tools) != 5 {
				t.Errorf("tools/list: %d %s", got.status, got.body)
			}
			got := u.post(u.toolCall(7, "whoami", nil))
			if want := "client of ann " + version; got.last().text() != want || string(got.last().ID) != "7" {
				t.Errorf("tools/call: %d %s, want %q", got.status, got.body, want)
			}
			if version >= stateless {
				if got.header.Get("Mcp-Session-Id") != "" || got.last().Result.ResultType != "complete" {
					t.Errorf("a stateless answer with session %q: %s", got.header.Get("Mcp-Session-Id"), got.body)
				}
				if got := u.post(u.message(1, "server/discover", nil)); got.status != 200 || !strings.Contains(got.body, version) {
					t.Errorf("server/discover: %d %s", got.status, got.body)
				}
			} else if got := u.post(u.message(1, "ping", nil)); got.status != 200 || got.last().Error != nil {
				t.Errorf("ping: %d %s", got.status, got.body)
			}
			if got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("Cache-Control: %q", got.header.Get("Cache-Control"))
			}
		})
	}
}

// pairs is who may try to reach whose call: another owner, and another client of the same owner.
var pairs = []struct{ name, victim, other string }{
	{"two owners", "ann", "bob"},
	{"two clients of one owner", "ann", "ann"},
}

func cancelOf(id any) string {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
	return string(b)
}

// statelessCancelOf is a cancel that says of itself that it is of 2026-07-28.
func statelessCancelOf(u *user, id any) string {
	return strings.Replace(u.message(0, "notifications/cancelled", map[string]any{"requestId": id}), `"id":0,`, "", 1)
}

func TestHandshakeCancelReachesOnlyItsOwnSession(t *testing.T) {
	w := newWorld(t)
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			victim, other := w.user(p.victim, handshake), w.user(p.other, handshake)
			pending, call := victim.start(5, "victim")

			other.post(cancelOf(5))
			modern := w.user(p.other, stateless)
			modern.post(cancelOf(5))
			modern.session = victim.session
			modern.post(statelessCancelOf(modern, 5))
			for _, session := range []string{"", "nonsense", victim.session} {
				thief := w.user(p.other, stateless)
				thief.version, thief.session = handshake, session
				if p.victim == p.other && session == victim.session {
					continue // that is the victim itself
				}
				thief.post(cancelOf(5))
			}
			victim.post(cancelOf("5")) // a string is another id
			victim.post(cancelOf(6))
			call.untouched(t)

			if got := victim.post(cancelOf(5)); got.status != http.StatusAccepted {
				t.Errorf("cancel: %d", got.status)
			}
			if err := await(t, call.ended); !errors.Is(err, ErrCancelled) {
				t.Errorf("cause: %v", err)
			}
			if got := await(t, pending.answer); got.last().Error == nil || got.last().Error.Code != -32800 {
				t.Errorf("answer to the cancelled call: %+v", got)
			}
		})
	}
}

func TestStatelessCallEndsOnlyWithItsOwnConnection(t *testing.T) {
	w := newWorld(t)
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			victim, other := w.user(p.victim, stateless), w.user(p.other, stateless)
			pending, call := victim.start(5, "victim")
			otherPending, otherCall := other.start(5, "other") // the same id, at the same time

			if got := other.post(cancelOf(5)); got.status != http.StatusAccepted {
				t.Errorf("posted cancel: %d", got.status)
			}
			other.post(statelessCancelOf(other, 5))
			victim.post(statelessCancelOf(victim, 5))
			victim.post(cancelOf(5))
			w.user(p.other, handshake).post(cancelOf(5))
			call.untouched(t)

			otherPending.drop()
			if err := await(t, otherCall.ended); !errors.Is(err, ErrDisconnected) {
				t.Errorf("cause: %v", err)
			}
			call.untouched(t)
			close(call.release)
			if got := await(t, pending.answer); got.last().text() != "unblocked victim" {
				t.Errorf("answer: %+v", got)
			}
		})
	}
}

func TestHandshakeCallOutlivesItsConnection(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", handshake)
	pending, call := u.start(5, "left alone")
	pending.drop()
	<-pending.answer

	// The server has seen the connection go when a call that a lost connection does cancel has been.
	probe := w.user("ann", stateless)
	p, seen := probe.start(1, "probe")
	p.drop()
	await(t, seen.ended)
	call.untouched(t)

	if got := u.post(u.toolCall(5, "echo", nil)); got.status != http.StatusConflict {
		t.Errorf("the same id again while it runs: %d %s", got.status, got.body)
	}
	u.post(cancelOf(5)) // from another connection: still its client
	if err := await(t, call.ended); !errors.Is(err, ErrCancelled) {
		t.Errorf("cause: %v", err)
	}
}

func TestProgressArrivesWholeAndUnmixed(t *testing.T) {
	w := newWorld(t)
	const n, rounds = 300, 5
	var wg sync.WaitGroup
	for _, version := range []string{stateless, handshake} {
		ann, bob := w.user("ann", version), w.user("bob", version)
		ann2 := w.user("ann", version)
		for i, u := range []*user{ann, ann, ann2, bob} { // two calls of one session, a second client, a second owner
			wg.Go(func() {
				for round := range rounds {
					label := fmt.Sprintf("%s %d %d", version, i, round)
					got := u.post(u.toolCall(fmt.Sprint(i, "-", round), "progress", map[string]any{"n": n, "label": label}))
					checkProgress(t, got, n, label)
				}
			})
		}
	}
	wg.Wait()
}

func checkProgress(t *testing.T, got answer, n int, label string) {
	if len(got.messages) != n+1 || got.last().text() != "done, <nil>" {
		t.Errorf("%s: %d messages, then %+v", label, len(got.messages), got.last())
		return
	}
	for i, m := range got.messages[:n] {
		if m.Method != "notifications/progress" || m.Params.Progress != i+1 || m.Params.Message != label {
			t.Errorf("%s: message %d is %+v", label, i, m)
			return
		}
	}
	if got.header.Get("Content-Type") != "text/event-stream" || got.header.Get("X-Accel-Buffering") != "no" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: headers %v", label, got.header)
	}
}

func TestFormOfTheAnswer(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", handshake)
	for _, tt := range []struct {
		accept, tool string
		status       int
		contentType  string
		text         string
	}{
		{"application/json, text/event-stream", "echo", 200, "application/json", ""},
		{"application/json, text/event-stream", "progress", 200, "text/event-stream", "done, <nil>"},
		{"application/json", "progress", 200, "application/json", "done, " + ErrNoStream.Error()},
		{"*/*", "progress", 200, "application/json", "done, " + ErrNoStream.Error()},
		{"-", "progress", 200, "application/json", "done, " + ErrNoStream.Error()},
		{"application/json, text/event-stream;q=0", "progress", 200, "application/json", "done, " + ErrNoStream.Error()},
		{"text/event-stream", "echo", 200, "text/event-stream", ""},
		{"text/html, image/png", "echo", 406, "application/json", ""},
	} {
		got := u.post(u.toolCall(1, tt.tool, nil), func(r *http.Request) {
			r.Header["Accept"] = []string{tt.accept}
			if tt.accept == "-" {
				r.Header.Del("Accept")
			}
		})
		if got.status != tt.status || got.header.Get("Content-Type") != tt.contentType || got.last().text() != tt.text {
			t.Errorf("%s %s: %d %s %q", tt.accept, tt.tool, got.status, got.header.Get("Content-Type"), got.last().text())
		}
	}
}

func TestPanicBecomesAnError(t *testing.T) {
	w := newWorld(t)
	for _, version := range []string{stateless, handshake} {
		u := w.user("ann", version)
		got := u.post(u.toolCall(9, "panic", nil))
		if got.last().Error == nil || got.last().Error.Code != -32603 || string(got.last().ID) != "9" || strings.Contains(got.body, "oh no") {
			t.Errorf("%s: %d %s", version, got.status, got.body)
		}
		if got := u.post(u.toolCall(10, "echo", map[string]any{"msg": "still here"})); got.last().text() != "still here" {
			t.Errorf("%s: after a panic: %s", version, got.body)
		}
	}
	if log := w.log.String(); !strings.Contains(log, "oh no") || !strings.Contains(log, "tool=panic") {
		t.Errorf("log: %s", log)
	}
}

func TestMissingResourceIsNamed(t *testing.T) {
	w := newWorld(t)
	w.mcp.AddResource(mcp.NewResource("test://there", "there"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return nil, nil
	})
	for version, code := range map[string]int{stateless: mcp.INVALID_PARAMS, handshake: mcp.RESOURCE_NOT_FOUND} {
		u := w.user("alice", version)
		got := u.post(u.message(1, "resources/read", map[string]any{"uri": "test://gone"}),
			func(r *http.Request) { r.Header.Set("Mcp-Name", "test://gone") })
		data, _ := got.last().Error.Data.(map[string]any)
		if got.last().Error.Code != code || data["uri"] != "test://gone" {
			t.Errorf("%s: %s", version, got.body)
		}
	}
}

func TestGetIsRefused(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", handshake)
	for _, method := range []string{"GET", "PUT", "HEAD", "PATCH"} {
		r := u.request(context.Background(), "")
		r.Method, r.Body, r.ContentLength = method, nil, 0
		if got := u.do(r); got.status != 405 || got.header.Get("Allow") != "POST, DELETE" {
			t.Errorf("%s: %d, Allow %q", method, got.status, got.header.Get("Allow"))
		}
	}
	s := w.user("ann", stateless)
	r := s.request(context.Background(), "")
	r.Method = "DELETE"
	if got := s.do(r); got.status != 405 || got.header.Get("Allow") != "POST" {
		t.Errorf("stateless DELETE: %d, Allow %q", got.status, got.header.Get("Allow"))
	}
}

func TestAuthorizeReadsTheBody(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	w := newWorld(t, func(c *HTTPConfig) {
		c.Authorize = func(_ context.Context, call Call) error {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, call.Method+" "+call.Tool+call.URI)
			switch call.Tool {
			case "block":
				return fault.New(fault.Forbidden, "no scope for block")
			case "gone":
				return fault.New(fault.NotFound, "no such tool").WithHint("Look at tools/list.")
			}
			return nil
		}
		c.Forbidden = func(w http.ResponseWriter, _ *http.Request, err error) {
			w.Header().Set("WWW-Authenticate", "Bearer error=insufficient_scope")
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	})
	for _, version := range []string{stateless, handshake} {
		u := w.user("ann", version)
		lie := func(r *http.Request) { // a header that names a harmless tool
			if version != stateless {
				r.Header.Set("Mcp-Method", "tools/list")
				r.Header.Set("Mcp-Name", "echo")
			}
		}
		if got := u.post(u.toolCall(1, "block", nil), lie); got.status != 403 || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %s", version, got.status, got.body)
		}
		if got := u.post(u.toolCall(1, "gone", nil)); got.last().Error == nil || !strings.Contains(got.last().Error.Message, "Look at tools/list") {
			t.Errorf("%s: %d %s", version, got.status, got.body)
		}
		if got := u.post(u.toolCall(1, "echo", nil)); got.status != 200 {
			t.Errorf("%s: %d %s", version, got.status, got.body)
		}
	}
	u := w.user("ann", handshake)
	u.post(u.message(1, "resources/read", map[string]any{"uri": "x://y", "name": "echo"}))
	if got := strings.Join(asked, ","); !strings.Contains(got, "tools/call block,tools/call gone,tools/call echo") || !strings.HasSuffix(got, ",resources/read x://y") {
		t.Errorf("asked about %s", got)
	}
	select {
	case <-w.calls:
		t.Error("a forbidden tool ran")
	default:
	}
}

func TestCloseCancelsWhatRuns(t *testing.T) {
	w := newWorld(t)
	var calls []*blocked
	for i, version := range []string{stateless, handshake} {
		_, call := w.user("ann", version).start(i, version)
		calls = append(calls, call)
	}
	w.d.Drain()
	for _, call := range calls {
		call.untouched(t)
	}
	if err := w.d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, call := range calls {
		if err := await(t, call.ended); !errors.Is(err, ErrShutdown) {
			t.Errorf("cause: %v", err)
		}
	}
	u := w.user("ann", stateless)
	if got := u.post(u.toolCall(1, "echo", nil)); got.status != 503 {
		t.Errorf("after Close: %d %s", got.status, got.body)
	}
}
