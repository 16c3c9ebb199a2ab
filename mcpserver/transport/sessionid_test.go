package transport

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

func TestSessionIDBelongsToItsOwnerAndKey(t *testing.T) {
	key, other := NewSessionKey(), NewSessionKey()
	agreed := &client{version: "2025-11-25"}
	id := key.mint("ann", agreed, time.Now())
	if c, ok := key.verify(id, "ann"); !ok || c.version != "2025-11-25" {
		t.Errorf("own id: %+v, %v", c, ok)
	}
	if key.mint("ann", agreed, time.Now()) == id {
		t.Error("two ids are one")
	}
	if strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("an id with characters that a header may not hold: %q", id)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(id)
	for i := range raw {
		changed := append([]byte(nil), raw...)
		changed[i] ^= 1
		if _, ok := key.verify(base64.RawURLEncoding.EncodeToString(changed), "ann"); ok {
			t.Errorf("accepted with byte %d changed", i)
		}
	}
	for name, wrong := range map[string]struct {
		key       SessionKey
		id, owner string
	}{
		"other owner": {key, id, "bob"}, "no owner": {key, id, ""}, "longer owner": {key, id, "ann "}, "other key": {other, id, "ann"},
		"empty": {key, "", "ann"}, "short": {key, id[:20], "ann"}, "longer": {key, id + "AAAA", "ann"}, "padded": {key, id + "=", "ann"},
		"not base64": {key, strings.Repeat("!", len(id)), "ann"}, "line break": {key, id[:10] + "\n" + id[10:], "ann"},
	} {
		if _, ok := wrong.key.verify(wrong.id, wrong.owner); ok {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzSessionID(f *testing.F) {
	key := NewSessionKey()
	good := key.mint("ann", &client{version: "2025-11-25"}, time.Now())
	f.Add(good)
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		if _, ok := key.verify(id, "ann"); ok && id != good {
			t.Errorf("accepted %q", id)
		}
	})
}

func TestLoadSessionKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp_session_key")
	key, err := LoadSessionKey(path)
	again, againErr := LoadSessionKey(path)
	if err != nil || againErr != nil || len(key) != keyBytes || string(key) != string(again) {
		t.Fatalf("%x, %v; %x, %v", key, err, again, againErr)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSessionKey(path); err == nil || !strings.Contains(fault.Hint(err), "Remove it") {
		t.Errorf("a broken key: %v", err)
	}
	if _, err := LoadSessionKey(filepath.Join(path, "x")); err == nil {
		t.Error("no folder: no error")
	}
}

func TestSessionOutlivesTheServer(t *testing.T) {
	key := NewSessionKey()
	withKey := func(c *HTTPConfig) { c.Key = key }
	before := newWorld(t, withKey)
	ann, bob := before.user("ann", handshake), before.user("bob", handshake)

	after := newWorld(t, withKey)
	ann.w, bob.w = after, after
	if got := ann.post(ann.toolCall(1, "whoami", nil)); got.last().text() != " "+handshake {
		t.Errorf("after a restart: %d %s", got.status, got.body)
	}
	pending, call := ann.start(5, "on the new server")
	ann.post(cancelOf(5))
	await(t, call.ended)
	await(t, pending.answer)

	bob.session = ann.session
	for _, body := range []string{bob.message(1, "ping", nil), bob.toolCall(1, "echo", nil), cancelOf(5)} {
		if got := bob.post(body); got.status != http.StatusNotFound {
			t.Errorf("a stranger's %s: %d %s", body, got.status, got.body)
		}
	}
	other := newWorld(t)
	ann.w = other
	if got := ann.post(ann.message(1, "ping", nil)); got.status != http.StatusNotFound {
		t.Errorf("a server with another key: %d", got.status)
	}
}

func TestDeleteEndsOnlyItsOwnSession(t *testing.T) {
	w := newWorld(t)
	del := func(u *user, session string) int {
		r := u.request(t.Context(), "")
		r.Method, r.Body, r.ContentLength = http.MethodDelete, nil, 0
		r.Header.Set("Mcp-Session-Id", session)
		if session == "" {
			r.Header.Del("Mcp-Session-Id")
		}
		return u.do(r).status
	}
	ann, ann2, bob := w.user("ann", handshake), w.user("ann", handshake), w.user("bob", handshake)
	pending, call := ann.start(5, "goes on")
	if got := del(bob, ann.session); got != 404 {
		t.Errorf("a stranger's DELETE: %d", got)
	}
	if got := del(bob, ""); got != 400 {
		t.Errorf("DELETE without a session: %d", got)
	}
	if got := del(ann, ann.session); got != 204 {
		t.Errorf("DELETE: %d", got)
	}
	if got := del(ann, ann.session); got != 404 {
		t.Errorf("DELETE again: %d", got)
	}
	if got := ann.post(ann.message(1, "ping", nil)); got.status != 404 {
		t.Errorf("the ended session: %d", got.status)
	}
	for _, u := range []*user{ann2, bob} {
		if got := u.post(u.toolCall(1, "whoami", nil)); got.last().text() != "client of "+u.owner+" "+handshake {
			t.Errorf("another session of %s: %d %s", u.owner, got.status, got.body)
		}
	}
	call.untouched(t)
	close(call.release)
	if got := await(t, pending.answer); got.last().text() != "unblocked goes on" {
		t.Errorf("its running call: %+v", got)
	}
}

// serveLocally answers a request without a network, for tests that need many.
func serveLocally(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func TestLargeInitializeIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", handshake)
	got := u.post(u.message(1, "initialize", map[string]any{"protocolVersion": handshake, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": strings.Repeat("x", rememberBytes), "version": "1"}}))
	u.session = got.header.Get("Mcp-Session-Id")
	if got := u.post(u.toolCall(1, "whoami", nil)); got.last().text() != " "+handshake {
		t.Errorf("%d %.200s", got.status, got.body)
	}
}

func TestLRU(t *testing.T) {
	l := newLRU[int](2)
	l.put("a", 1)
	l.put("b", 2)
	l.put("a", 3)
	l.put("c", 4) // b was used longest ago
	for key, want := range map[string]int{"a": 3, "b": 0, "c": 4} {
		if got, ok := l.get(key); got != want || ok != (want != 0) {
			t.Errorf("%s: %d, %v", key, got, ok)
		}
	}
	l.remove("a")
	l.remove("a")
	if _, ok := l.get("a"); ok || l.order.Len() != 1 || len(l.byKey) != 1 {
		t.Error("a was not removed")
	}
}
