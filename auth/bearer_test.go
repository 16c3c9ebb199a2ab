package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

const testMetadata = "https://cells.example/.well-known/oauth-protected-resource/mcp"

// answer is what a request to a guarded handler led to.
type answer struct {
	*http.Response
	body    map[string]string
	log     string
	reached bool // the handler behind
	inner   *http.Request
}

// send puts a request with the given Authorization headers through RequireBearer.
func send(t testing.TB, v Verifier, headers ...string) answer {
	t.Helper()
	var log bytes.Buffer
	var a answer
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { a.reached, a.inner = true, r })
	o := BearerOptions{
		ResourceMetadata: testMetadata, Scopes: []string{"python:execute", "sessions:read"},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	r := httptest.NewRequest("POST", "/mcp?access_token=query-token", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	w := httptest.NewRecorder()
	RequireBearer(v, o)(next).ServeHTTP(w, r)
	a.Response, a.log = w.Result(), log.String()
	if a.StatusCode != http.StatusOK {
		if err := json.NewDecoder(a.Body).Decode(&a.body); err != nil {
			t.Errorf("body is no JSON object of texts: %v", err)
		}
	}
	if got := r.Header.Values("Authorization"); len(got) != len(headers) {
		t.Errorf("the outer request was changed: %q", got)
	}
	return a
}

func TestRequireBearerLetsThrough(t *testing.T) {
	good := token{}.sign(t)
	for _, header := range []string{"Bearer " + good, "bearer " + good, "BEARER   " + good, " Bearer " + good + " "} {
		a := send(t, testVerifier(t), header)
		if !a.reached {
			t.Fatalf("%.10q: refused with %d: %v", header, a.StatusCode, a.body)
		}
		p, ok := FromContext(a.inner.Context())
		if !ok || p.Subject != "ada" || !p.Has("python:execute") || p.Has("python") || p.Has("") {
			t.Errorf("principal %+v, %v", p, ok)
		}
		if len(a.inner.Header.Values("Authorization")) != 0 {
			t.Error("the handler can see the token")
		}
	}
}

func TestRequireBearerRefuses(t *testing.T) {
	good := token{}.sign(t)
	tests := []struct {
		name    string
		headers []string
		status  int
		code    string // error=
		message string // in the body and the log
	}{
		{"no header", nil, 401, "", "needs a bearer token"},
		{"another scheme", []string{"Basic dXNlcjpwYXNz"}, 401, "", "needs a bearer token"},
		{"empty header", []string{""}, 401, "", "needs a bearer token"},
		{"token without scheme", []string{good}, 401, "", "needs a bearer token"},
		{"scheme alone", []string{"Bearer"}, 401, "invalid_token", "is empty"},
		{"empty token", []string{"Bearer "}, 401, "invalid_token", "is empty"},
		{"quoted", []string{`Bearer "` + good + `"`}, 401, "invalid_token", "characters"},
		{"two in one", []string{"Bearer " + good + ", Bearer " + good}, 401, "invalid_token", "characters"},
		{"only padding", []string{"Bearer =="}, 401, "invalid_token", "characters"},
		{"tab between", []string{"Bearer\t" + good}, 401, "", "needs a bearer token"},
		{"two headers", []string{"Bearer " + good, "Bearer " + good}, 400, "invalid_request", "several"},
		{"two headers, one other", []string{"Bearer " + good, "Basic eA=="}, 400, "invalid_request", "several"},
		{"garbage", []string{"Bearer garbage"}, 401, "invalid_token", "not a JSON Web Token"},
		{"expired", []string{"Bearer " + token{claims: jwt.MapClaims{"exp": noon.Add(-time.Hour).Unix()}}.sign(t)}, 401, "invalid_token", "expired"},
		{"huge", []string{"Bearer " + strings.Repeat("a", MaxToken+1)}, 401, "invalid_token", "at most"},
		{"quotes in a claim", []string{"Bearer " + token{claims: jwt.MapClaims{"aud": "a\"b\r\nX: y\\"}}.sign(t)}, 401, "invalid_token", "another audience"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := send(t, testVerifier(t), tt.headers...)
			if a.reached || a.StatusCode != tt.status {
				t.Fatalf("reached %v, status %d, want %d", a.reached, a.StatusCode, tt.status)
			}
			checkChallenge(t, a.Header.Get("WWW-Authenticate"), tt.code)
			if a.body["error"] != tt.code || !strings.Contains(a.body["message"], tt.message) || a.body["hint"] == "" {
				t.Errorf("body %v, want %q and %q", a.body, tt.code, tt.message)
			}
			checkLog(t, a.log, tt.message, tt.headers)
		})
	}
}

func checkChallenge(t *testing.T, got, code string) {
	t.Helper()
	if !strings.HasPrefix(got, "Bearer ") ||
		!strings.Contains(got, `resource_metadata="`+testMetadata+`"`) ||
		!strings.Contains(got, `scope="python:execute sessions:read"`) {
		t.Errorf("WWW-Authenticate: %s", got)
	}
	if strings.Contains(got, "error=") != (code != "") || !strings.Contains(got, code) {
		t.Errorf("WWW-Authenticate: %s, want the code %q", got, code)
	}
	if code != "" && !strings.Contains(got, `error_description="`) {
		t.Errorf("WWW-Authenticate without a description: %s", got)
	}
	if strings.Count(got, `"`)%2 != 0 || strings.ContainsAny(got, "\r\n\\") {
		t.Errorf("WWW-Authenticate is broken: %q", got)
	}
}

// checkLog wants reason, kind, the request's name and whose it is, and nothing of the header.
func checkLog(t *testing.T, log, reason string, headers []string) {
	t.Helper()
	for _, want := range []string{reason, "kind=", "client=192.0.2.1:1234", "path=/mcp", "request="} {
		if !strings.Contains(log, want) {
			t.Errorf("log lacks %q: %s", want, log)
		}
	}
	if strings.Contains(log, "query-token") {
		t.Errorf("log holds the query: %s", log)
	}
	for _, header := range headers {
		for part := range strings.FieldsFuncSeq(header, func(r rune) bool { return r == ' ' || r == '.' || r == '"' || r == ',' }) {
			if len(part) > 10 && strings.Contains(log, part) {
				t.Errorf("log holds a part of the header, %.20q…: %.300s", part, log)
			}
		}
	}
}

func TestRequireBearerWhenNothingCanBeDecided(t *testing.T) {
	for _, tt := range []struct {
		err     error
		status  int
		message string
	}{
		{fault.New(fault.Unavailable, "the issuer does not answer").WithHint("Try again."), 503, "the issuer does not answer"},
		{errors.New("/etc/keys: secret detail"), 500, "internal error"},
		{context.Canceled, 499, "context canceled"},
	} {
		a := send(t, func(context.Context, string) (Principal, error) { return Principal{Subject: "eve"}, tt.err }, "Bearer x")
		if a.reached || a.StatusCode != tt.status || a.body["message"] != tt.message {
			t.Errorf("%v: reached %v, %d %v", tt.err, a.reached, a.StatusCode, a.body)
		}
		if a.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%v: a challenge would make the client throw its token away", tt.err)
		}
	}
}

func TestBearerWithoutOptions(t *testing.T) {
	w := httptest.NewRecorder()
	o := BearerOptions{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	RequireBearer(testVerifier(t), o)(nil).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("WWW-Authenticate: %q", got)
	}
}

func TestInsufficientScope(t *testing.T) {
	w := httptest.NewRecorder()
	var log bytes.Buffer
	o := BearerOptions{ResourceMetadata: testMetadata, ScopePrefix: "api://cells/", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	InsufficientScope(w, httptest.NewRequest("POST", "/mcp", nil), o, NeedsScope("this", "files:read", "files:write"))
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d", w.Code)
	}
	want := `Bearer error="insufficient_scope", error_description="this needs the scopes 'files:read' and 'files:write', which this token does not have", ` +
		`scope="api://cells/files:read api://cells/files:write", resource_metadata="` + testMetadata + `"`
	if got := w.Header().Get("WWW-Authenticate"); got != want {
		t.Errorf("WWW-Authenticate\n got %s\nwant %s", got, want)
	}
	var body map[string]string
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body["error"] != "insufficient_scope" ||
		body["kind"] != "forbidden" || !strings.Contains(body["hint"], `"files:read" and "files:write"`) {
		t.Errorf("body %s, %v", w.Body, err)
	}
	if !strings.Contains(log.String(), "files:read") {
		t.Errorf("log: %s", &log)
	}
}

// What bearerToken returns is one token and was in the header.
func FuzzBearerToken(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer ", "bearer abc", "Basic eA==", "Bearer a b", "Bearer \"a\"", "Bearer =", "Bearer\x00a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, err := bearerToken([]string{header})
		if (err == nil) != (token != "") {
			t.Fatalf("token %q, error %v", token, err)
		}
		if err != nil {
			if len(header) > 60 && strings.Contains(fault.Text(err), header) {
				t.Error("the error holds the header")
			}
			return
		}
		if !strings.HasSuffix(strings.TrimRight(header, " \t"), token) || strings.ContainsAny(token, " \t,\"\r\n\x00") {
			t.Errorf("%q gave %q", header, token)
		}
	})
}
