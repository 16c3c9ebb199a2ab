package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that has too many requests is asked again when it says so, with the same body, and not without end.
func TestRequestsAreSentAgainWhenTheServerSays(t *testing.T) {
	for name, tt := range map[string]struct {
		retryAfter string
		refusals   int
		want       int // status
		took       time.Duration
	}{
		"at once":      {"", 0, 200, 0},
		"twice":        {"2", 2, 200, 4 * time.Second},
		"in a day":     {"86400", 2, 429, 0},
		"without when": {"", 2, 429, 0},
		"by a date":    {"Wed, 21 Oct 2026 07:28:00 GMT", 2, 429, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				server := roundTripper(func(r *http.Request) *http.Response {
					w := httptest.NewRecorder()
					if text, _ := io.ReadAll(r.Body); string(text) != "call" {
						t.Errorf("the server gets %q", text)
					}
					if asked++; asked <= tt.refusals {
						w.Header().Set("Retry-After", tt.retryAfter)
						w.WriteHeader(429)
					}
					return w.Result()
				})
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/mcp", strings.NewReader("call"))
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				got, err := refusals{server}.sendPatiently(r)
				if err != nil || got.StatusCode != tt.want || time.Since(began) != tt.took {
					t.Errorf("%v %v after %v", got, err, time.Since(began))
				}
			})
		})
	}
}

type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// A call that is one too many waits; what fails for another reason does not.
func TestCallsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for failure, want := range map[string]time.Duration{
			"Error: too many calls: 60 a minute are allowed, 1 at once\nHint: wait 3 s, then call again": 3 * time.Second,
			"-32000: too many calls\nHint: wait 1 s, then call again":                                    time.Second,
			"Error: too many calls\nHint: wait 300 s, then call again":                                   0,
			"Error: the queue is full\nHint: call again":                                                 0,
			"wait 3 s, then call again":                                                                  0,
			"":                                                                                           0,
		} {
			began := time.Now()
			if ok := waited(t.Context(), failure); ok != (want > 0) || time.Since(began) != want {
				t.Errorf("%q: %v after %v", failure, ok, time.Since(began))
			}
		}
	})
}
