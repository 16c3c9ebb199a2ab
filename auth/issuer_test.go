package auth

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

const (
	testJWKS      = testIssuer + "/keys"
	testDiscovery = testIssuer + "/.well-known/openid-configuration"
)

// fakeIssuer is an authorization server that is asked without a network, so that a test's clock is its clock.
type fakeIssuer struct {
	mu      sync.Mutex
	answers map[string]http.HandlerFunc // by address
	asked   map[string]int
}

func newFakeIssuer(keys ...string) *fakeIssuer {
	f := &fakeIssuer{answers: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	f.publish(keys...)
	f.at(testDiscovery, says(`{"issuer":"`+testIssuer+`","jwks_uri":"`+testJWKS+`"}`))
	return f
}

func (f *fakeIssuer) at(address string, answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[address] = answer
}

// publish exchanges the key set.
func (f *fakeIssuer) publish(keys ...string) {
	f.at(testJWKS, says(`{"keys":[`+strings.Join(keys, ",")+`]}`))
}

func (f *fakeIssuer) count(address string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[address]
}

func (f *fakeIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	answer := f.answers[r.URL.String()]
	f.asked[r.URL.String()]++
	f.mu.Unlock()
	w := httptest.NewRecorder()
	if answer == nil {
		answer = http.NotFound
	}
	answer(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if w.Code == 0 {
		return nil, errors.New("connection refused")
	}
	w.Flush()
	response := w.Result()
	response.Request = r
	return response, nil
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

func down(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }

// jwk is a public key as issuers publish it; extra adds members, and wins.
func jwk(t testing.TB, kid string, key crypto.PublicKey, extra ...string) string {
	t.Helper()
	made, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}})
	if err != nil {
		t.Fatal(err)
	}
	members := map[string]any{}
	raw := must(json.Marshal(made.Marshal()))
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(extra); n += 2 {
		members[extra[n]] = extra[n+1]
	}
	return string(must(json.Marshal(members)))
}

func openFake(t *testing.T, f *fakeIssuer, change ...func(*IssuerConfig)) *Issuer {
	t.Helper()
	cfg := IssuerConfig{Rules: testRules(), JWKSURI: testJWKS, Transport: f, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	i, err := OpenIssuer(t.Context(), cfg)
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	t.Cleanup(i.Close)
	return i
}

func kid(name string) map[string]any { return map[string]any{"kid": name} }

// wantToken fails unless a token holds, or, with a want, is refused with it.
func wantToken(t *testing.T, i *Issuer, token, want string) {
	t.Helper()
	_, err := i.Verify(t.Context(), token)
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%v, want %q", err, want)
	}
}

func TestIssuerFindsItsKeys(t *testing.T) {
	const deep = "https://issuer.example/realms/cells"
	metadata := func(issuer string) http.HandlerFunc {
		return says(`{"issuer":"` + issuer + `","jwks_uri":"` + testJWKS + `"}`)
	}
	for _, tt := range []struct{ name, issuer, at string }{
		{"OpenID Connect", testIssuer, testDiscovery},
		{"issuer with a slash", testIssuer + "/", testDiscovery},
		{"RFC 8414", testIssuer, testIssuer + "/.well-known/oauth-authorization-server"},
		{"OpenID Connect, with a path", deep, deep + "/.well-known/openid-configuration"},
		{"RFC 8414, with a path", deep, testIssuer + "/.well-known/oauth-authorization-server/realms/cells"},
		{"RFC 8414 for OpenID Connect", deep, testIssuer + "/.well-known/openid-configuration/realms/cells"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeIssuer(jwk(t, "a", &rsaKey().PublicKey))
			f.at(testDiscovery, http.NotFound)
			f.at(tt.at, metadata(tt.issuer))
			i := openFake(t, f, func(c *IssuerConfig) { c.JWKSURI, c.Issuer = "", tt.issuer })
			wantToken(t, i, token{header: kid("a"), claims: jwt.MapClaims{"iss": tt.issuer}}.sign(t), "")
			wantToken(t, i, token{header: kid("a"), claims: jwt.MapClaims{"iss": tt.issuer + "x"}}.sign(t), "another issuer")
		})
	}
}

func TestIssuerThatCannotServe(t *testing.T) {
	key := jwk(t, "a", &rsaKey().PublicKey)
	for _, tt := range []struct {
		name, at string
		answer   http.HandlerFunc
		want     string
	}{
		{"metadata for others", testDiscovery, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "publishes no metadata at"},
		{"no metadata", testDiscovery, http.NotFound, "publishes no metadata at https://issuer.example/.well-known/openid-configuration or"},
		{"metadata of another issuer", testDiscovery, says(`{"issuer":"https://evil.example","jwks_uri":"` + testJWKS + `"}`), "another issuer"},
		{"a slash more", testDiscovery, says(`{"issuer":"` + testIssuer + `/","jwks_uri":"` + testJWKS + `"}`), "Set MCP_ISSUER=https://issuer.example/"},
		{"no jwks_uri", testDiscovery, says(`{"issuer":"` + testIssuer + `"}`), "names no jwks_uri"},
		{"keys over http", testDiscovery, says(`{"issuer":"` + testIssuer + `","jwks_uri":"http://issuer.example/keys"}`), "not https"},
		{"keys on this machine", testDiscovery, says(`{"issuer":"` + testIssuer + `","jwks_uri":"http://127.0.0.1:1/x"}`), "leads away from https"},
		{"keys in a file", testDiscovery, says(`{"issuer":"` + testIssuer + `","jwks_uri":"file:///etc/passwd"}`), "no address"},
		{"a page", testDiscovery, says("<html>"), "not the JSON"},
		{"an error", testJWKS, down, "status 503"},
		{"no keys", testJWKS, says(`{}`), "no key set"},
		{"keys that are none", testJWKS, says(`{"keys":[1,{},{"kty":"oct","k":"c2VjcmV0","kid":"s"}]}`), "no key for RS256"},
		{"keys of another algorithm", testJWKS, says(`{"keys":[` + jwk(t, "e", &ecKey().PublicKey) + `]}`), "Set MCP_ALGORITHM to what it signs with. Its keys: e is for ES256."},
		{"too many keys", testJWKS, says(`{"keys":[` + strings.Repeat(key+",", maxKeys) + key + `]}`), "at most 100"},
		{"no end", testJWKS, says(`{"keys":["` + strings.Repeat("x", maxDocument) + `"]}`), "more than 1048576 bytes"},
		{"a redirect to http", testJWKS, http.RedirectHandler("http://issuer.example/x", http.StatusFound).ServeHTTP, "not https"},
		{"a redirect to this machine", testJWKS, http.RedirectHandler("http://127.0.0.1:1/x", http.StatusFound).ServeHTTP, "leads away from https"},
		{"a redirect to itself", testJWKS, http.RedirectHandler(testJWKS, http.StatusFound).ServeHTTP, "more than 3 redirects"},
		{"silence", testJWKS, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeIssuer(key)
				f.at(tt.at, tt.answer)
				f.at("http://127.0.0.1:1/x", says(`{"keys":[`+key+`]}`))
				i := openFake(t, f, func(c *IssuerConfig) { c.JWKSURI = "" })
				good := token{header: kid("a")}.sign(t)
				_, err := i.Verify(t.Context(), good)
				if fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" || strings.Contains(fault.Text(err), "issuer.example") {
					t.Errorf("a caller is told %v", err)
				}
				if serving, problem := i.Health(); serving || !strings.Contains(fault.Text(problem), tt.want) {
					t.Errorf("health: %v, %v; want %q", serving, fault.Text(problem), tt.want)
				}
				f.publish(key)
				f.at(testDiscovery, says(`{"issuer":"`+testIssuer+`","jwks_uri":"`+testJWKS+`"}`))
				time.Sleep(retryMost + fetchTimeout)
				wantToken(t, i, good, "")
			})
		})
	}
}

// A new key serves at once, and one that has gone from the set does not, however well its tokens are remembered.
func TestIssuerExchangesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, newer := jwk(t, "older", &rsaKey().PublicKey), jwk(t, "newer", &otherKey().PublicKey)
		f := newFakeIssuer(older)
		i := openFake(t, f)
		byOlder := token{header: kid("older")}.sign(t)
		byNewer := token{header: kid("newer"), key: otherKey()}.sign(t)
		wantToken(t, i, byOlder, "")
		f.publish(older, newer)
		time.Sleep(refreshPause)
		wantToken(t, i, byNewer, "")
		wantToken(t, i, byOlder, "")
		if n := f.count(testJWKS); n != 2 {
			t.Errorf("fetched %d times", n)
		}
		f.publish(newer)
		time.Sleep(refreshEvery)
		synctest.Wait()
		wantToken(t, i, byOlder, "does not publish")
		wantToken(t, i, byNewer, "")
		f.publish(jwk(t, "newer", &rsaKey().PublicKey)) // the same name for another key
		time.Sleep(refreshEvery)
		synctest.Wait()
		wantToken(t, i, byNewer, "signature")
		f.publish()
		time.Sleep(refreshEvery)
		synctest.Wait()
		wantToken(t, i, token{header: kid("newer")}.sign(t), "cannot be verified now")
	})
}

// Tokens with made-up keys cannot make the server ask its issuer all the time, nor wait.
func TestUnknownKeysAreLookedForOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeIssuer(jwk(t, "a", &rsaKey().PublicKey))
		i := openFake(t, f)
		began := time.Now()
		time.Sleep(refreshPause)
		var wg sync.WaitGroup
		for n := range 200 {
			wg.Go(func() {
				wantToken(t, i, token{header: kid(fmt.Sprintf("../../etc/%d' OR 1=1", n%20))}.sign(t), "does not publish")
			})
		}
		wg.Wait()
		if n := f.count(testJWKS); n != 2 {
			t.Errorf("fetched %d times", n)
		}
		if d := time.Since(began); d != refreshPause {
			t.Errorf("they waited for %s", d-refreshPause)
		}
		f.at(testJWKS, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		time.Sleep(refreshPause)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := i.Verify(ctx, token{header: kid("b")}.sign(t)); err == nil || time.Since(began) > 2*refreshPause+time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestIssuerThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := jwk(t, "a", &rsaKey().PublicKey)
		f := newFakeIssuer(key)
		i := openFake(t, f)
		f.at(testJWKS, down)
		time.Sleep(refreshEvery)
		synctest.Wait()
		wantToken(t, i, token{header: kid("a")}.sign(t), "")
		serving, problem := i.Health()
		if !serving || problem == nil || !strings.Contains(problem.Error(), "keys of 2000-01-01T00:00:00Z serve on") {
			t.Errorf("health: %v, %v", serving, problem)
		}
		newer := token{header: kid("b")}.sign(t) // its issuer may have begun to use its key meanwhile
		if _, err := i.Verify(t.Context(), newer); fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" {
			t.Errorf("a token with a new key: %v", err)
		}
		before := f.count(testJWKS)
		time.Sleep(10 * time.Minute)
		if n := f.count(testJWKS) - before; n < 20 || n > 30 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		f.publish(key)
		time.Sleep(retryMost)
		synctest.Wait()
		if serving, problem := i.Health(); !serving || problem != nil {
			t.Errorf("health after its return: %v, %v", serving, problem)
		}
		wantToken(t, i, newer, "does not publish")
	})
}

func TestKeysOfASet(t *testing.T) {
	f := newFakeIssuer(
		jwk(t, "rsa", &rsaKey().PublicKey), jwk(t, "ec", &ecKey().PublicKey), jwk(t, "ed", edKey().Public()),
		jwk(t, "pss", &otherKey().PublicKey, "alg", "PS256"),
		jwk(t, "enc", &otherKey().PublicKey, "use", "enc"),
		jwk(t, "private", &otherKey().PublicKey, "d", "AAAA", "x5u", "http://127.0.0.1:1/cert", "x5c", "nonsense"),
	)
	i := openFake(t, f, func(c *IssuerConfig) { c.Algorithms = []string{"RS256", "PS256", "ES256"} })
	if got := i.keys.unused; len(got) != 3 || !slices.ContainsFunc(got, func(s string) bool { return s == "enc is not for signatures" }) {
		t.Errorf("unused: %q", got)
	}
	es, ps := jwt.SigningMethodES256, jwt.SigningMethodPS256
	for name, tt := range map[string]struct {
		token token
		want  string
	}{
		"by name":                    {token{header: kid("rsa")}, ""},
		"EC by name":                 {token{header: kid("ec"), method: es, key: ecKey()}, ""},
		"no kid":                     {token{method: es, key: ecKey()}, ""},
		"no kid, second RSA key":     {token{method: ps, key: otherKey()}, ""},
		"no kid, of nobody's":        {token{method: ps, key: must(newRSAKey())}, "signature"},
		"another key's name":         {token{header: kid("ec")}, "does not go with its key"},
		"an algorithm not the key's": {token{header: kid("pss"), key: otherKey()}, "does not go with its key"},
		"another's signature":        {token{header: kid("rsa"), key: otherKey()}, "signature"},
		"an algorithm not allowed":   {token{header: kid("ed"), method: jwt.SigningMethodEdDSA, key: edKey()}, "not signed with"},
		"for encryption":             {token{header: kid("enc"), key: otherKey()}, "does not publish"},
		"a number for a name":        {token{header: map[string]any{"kid": 5}}, "kid is not text"},
		"a list for a name":          {token{header: map[string]any{"kid": []string{"rsa"}}}, "kid is not text"},
		"no name":                    {token{header: kid("")}, "does not publish"},
		"its own key": {token{key: must(newRSAKey()), header: map[string]any{"kid": "mine", "jku": "https://evil.example/keys",
			"jwk": json.RawMessage(jwk(t, "mine", &otherKey().PublicKey))}}, "does not publish"},
	} {
		t.Run(name, func(t *testing.T) { wantToken(t, i, tt.token.sign(t), tt.want) })
	}
	if f.count("https://evil.example/keys") > 0 {
		t.Error("an address in a token was asked")
	}
}

// Issuers that publish several keys under one name, or none, have each of them serve.
func TestKeysThatShareAName(t *testing.T) {
	third, stranger := must(newRSAKey()), must(newRSAKey())
	i := openFake(t, newFakeIssuer(
		jwk(t, "same", &rsaKey().PublicKey), jwk(t, "same", &otherKey().PublicKey), jwk(t, "same", &ecKey().PublicKey),
		jwk(t, "", &third.PublicKey), jwk(t, "", &ecKey().PublicKey, "alg", "ES256"),
	), func(c *IssuerConfig) { c.Algorithms = []string{"RS256", "ES256"} })
	for name, tt := range map[string]struct {
		token token
		want  string
	}{
		"the first":                   {token{header: kid("same")}, ""},
		"the second":                  {token{header: kid("same"), key: otherKey()}, ""},
		"of another algorithm":        {token{header: kid("same"), method: jwt.SigningMethodES256, key: ecKey()}, ""},
		"without a name":              {token{key: third}, ""},
		"without a name, the other":   {token{method: jwt.SigningMethodES256, key: ecKey()}, ""},
		"the unnamed by another name": {token{header: kid("same"), key: third}, "signature"},
		"nobody's":                    {token{header: kid("same"), key: stranger}, "signature"},
	} {
		t.Run(name, func(t *testing.T) { wantToken(t, i, tt.token.sign(t), tt.want) })
	}
}

func TestOpenIssuerEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeIssuer()
		f.at(testJWKS, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		cfg := IssuerConfig{Rules: testRules(), JWKSURI: testJWKS, Transport: f}
		if _, err := OpenIssuer(ctx, cfg); fault.KindOf(err) != fault.Cancelled {
			t.Errorf("%v", err)
		}
	})
}

func TestOpenIssuerRefuses(t *testing.T) {
	for want, change := range map[string]func(*IssuerConfig){
		"no issuer":    func(c *IssuerConfig) { c.Issuer = "" },
		"no audience":  func(c *IssuerConfig) { c.Audiences = nil },
		"not https":    func(c *IssuerConfig) { c.JWKSURI = "http://issuer.example/keys" },
		`"HS256"`:      func(c *IssuerConfig) { c.Algorithms = []string{"HS256"} },
		"has a query":  func(c *IssuerConfig) { c.JWKSURI, c.Issuer = "", testIssuer+"?a=b" },
		"cannot be re": func(c *IssuerConfig) { c.JWKSURI = "https://[" },
	} {
		cfg := IssuerConfig{Rules: testRules(), JWKSURI: testJWKS, Transport: newFakeIssuer()}
		change(&cfg)
		if i, err := OpenIssuer(t.Context(), cfg); err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %q", i, err, want)
		}
	}
}
