package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellblock/auth"
	"cellblock/internal/fault"
)

// What is in memory of one owner's bodies is bounded, and so is that of all; small bodies are no matter, and what has been
// answered is none any more.
func TestBodiesAtTheSameTime(t *testing.T) {
	s := newShares(2000, 1000)
	during := func() {}
	h := boundBodyBytes(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		during()
		if err != nil {
			_, _ = io.WriteString(w, fault.KindOf(err).String())
		}
	}))
	send := func(who string, counted int) string {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", smallBody+counted)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.NewContext(r.Context(), auth.Principal{Issuer: "i", Subject: who})))
		return w.Body.String()
	}
	if got := send("ann", 1001); got != fault.Busy.String() {
		t.Errorf("ann's too large one: %s", got)
	}
	during = func() {
		during = func() {}
		for _, c := range []struct {
			who     string
			counted int
			want    string
		}{
			{"ann", 300, ""},
			{"ann", 301, fault.Busy.String()},
			{"ann", 0, ""},
			{"bob", 1000, ""},
		} {
			if got := send(c.who, c.counted); got != c.want {
				t.Errorf("beside ann's 700, %d of %s: %s", c.counted, c.who, got)
			}
		}
		during = func() {
			during = func() {}
			if got := send("cyd", 400); got != fault.Unavailable.String() {
				t.Errorf("what is too much of all: %s", got)
			}
		}
		send("bob", 1000)
	}
	send("ann", 700)
	if s.all != 0 || len(s.by) != 0 {
		t.Errorf("afterwards %d are counted, of %v", s.all, s.by)
	}
}
