package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellblock/auth"
	"cellblock/internal/fault"
)

func TestReady(t *testing.T) {
	for _, tt := range []struct {
		health Health
		code   int
		want   string
	}{
		{Health{Status: "ok", Detail: "secret"}, 200, `{"ready":true}`},
		{Health{Status: "degraded", Detail: "secret"}, 200, `{"ready":true}`},
		{Health{Status: Down, Reason: "no keys", Detail: "secret"}, 503, `{"ready":false,"reason":"no keys"}`},
	} {
		s := newSite(t)
		s.health = tt.health
		got := s.ask("GET", "/ready", "")
		if got.Code != tt.code || strings.TrimSpace(got.Body.String()) != tt.want {
			t.Errorf("%+v: %d %s", tt.health, got.Code, got.Body)
		}
		if got := s.ask("GET", "/health", ""); !strings.Contains(got.Body.String(), tt.health.Reason) || strings.Contains(got.Body.String(), "secret") {
			t.Errorf("%+v: health says %s", tt.health, got.Body)
		}
		if (got.Header().Get("Retry-After") != "") != (tt.code == 503) {
			t.Errorf("%+v: Retry-After %q", tt.health, got.Header().Get("Retry-After"))
		}
	}
}

// What is wrong with the machine is for those who operate it.
func TestHealthForOperators(t *testing.T) {
	s := newSite(t, func(c *Config) {
		c.Operator = func(ctx context.Context) bool {
			p, _ := auth.FromContext(ctx)
			return p.Subject == "root"
		}
	})
	s.health = Health{Status: "degraded", Detail: "for all", OperatorDetail: "for operators"}
	for headers, want := range map[string]string{"Bearer token-of-ann": "for all", "Bearer token-of-root": "for operators"} {
		if got := s.ask("GET", "/health", "", "Authorization", headers); !strings.Contains(got.Body.String(), `"detail":"`+want+`"`) {
			t.Errorf("%s: %s", headers, got.Body)
		}
	}
}

// Whether a token holds cannot be told: that is not the caller's fault, and passes.
func TestTokensThatCannotBeVerified(t *testing.T) {
	s := newSite(t, func(c *Config) {
		c.Verifier = func(context.Context, string) (auth.Principal, error) {
			return auth.Principal{}, fault.New(fault.Unavailable, "no keys").WithHint("Wait.")
		}
	})
	got := s.ask("POST", "/mcp", ping, asAnn...)
	if got.Code != 503 || got.Header().Get("Retry-After") == "" || got.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
	}
}

func TestScopeOfARoute(t *testing.T) {
	s := newSite(t)
	cfg := s.handler.(*handler).cfg
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for needs, want := range map[access]int{"x": 204, anyToken: 204, anybody: 204, "x:y": 403, "X": 403} {
		r := httptest.NewRequest("GET", "/page", nil)
		r.Header.Set("Authorization", "Bearer token-of-ann")
		w := httptest.NewRecorder()
		cfg.guarded(route{path: "/page", access: needs, handler: page}, newShares(0, 0), newShares(0, 0)).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d", needs, w.Code)
		}
		if challenge := w.Header().Get("WWW-Authenticate"); want == 403 && (!strings.Contains(challenge, `error="insufficient_scope"`) ||
			!strings.Contains(challenge, `scope="`+string(needs)+`"`) || !strings.Contains(challenge, `resource_metadata="https://cells.example.com`)) {
			t.Errorf("%q: %s", needs, challenge)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a route without access is served")
		}
	}()
	cfg.guarded(route{path: "/page", handler: page}, newShares(0, 0), newShares(0, 0))
}
