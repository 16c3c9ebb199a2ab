package oauth

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/e2e/rig"
)

// listSessions needs sessions:read, and no kernel.
const listSessions = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sessions","arguments":{}}}`

// post sends one message and returns the status, the challenge of a refusal and the body.
func post(t *testing.T, url, body string, headers ...string) (status int, challenge, answer string) {
	t.Helper()
	all := http.Header{}
	for n := 0; n < len(headers); n += 2 {
		all.Add(headers[n], headers[n+1])
	}
	resp, text := rig.Post(t, url, body, all)
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), text
}

// serveBehind starts a server behind a provider.
func serveBehind(t *testing.T, p *provider) (*rig.Server, forger) {
	t.Helper()
	needLocal(t)
	i := rig.Install(t, "--provisioner", "local", "--pool-size", "0")
	i.Env = []string{"MCP_ISSUER=" + p.issuer}
	s := i.Serve(t)
	return s, forger{t, p, s.URL}
}

func TestForgedTokens(t *testing.T) {
	var lured atomic.Int64
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lured.Add(1)
		io.WriteString(w, `{"keys":[]}`)
	}))
	t.Cleanup(evil.Close)
	p := startProvider(t, nil)
	s, f := serveBehind(t, p)
	good := f.good(nil)
	check := func(t *testing.T, want int, url, body string, headers ...string) string {
		t.Helper()
		status, challenge, answer := post(t, url, body, headers...)
		if status != want {
			t.Fatalf("status %d, want %d: %s", status, want, answer)
		}
		if want == 401 && !strings.HasPrefix(challenge, "Bearer ") {
			t.Errorf("WWW-Authenticate: %s", challenge)
		}
		return challenge
	}
	for name, token := range f.forgeries(evil.URL) {
		t.Run(name, func(t *testing.T) {
			check(t, 401, s.URL, listSessions, "Authorization", "Bearer "+token)
			if len(token) > 20 && strings.Contains(s.Log(), token[:min(len(token), 500)]) {
				t.Error("the token is in the log")
			}
			if resp, body := get(t, strings.TrimSuffix(s.URL, "/mcp")+"/health", http.Header{"Authorization": {"Bearer " + token}}); resp.StatusCode != 401 {
				t.Errorf("health: %s", body)
			}
		})
	}
	if lured.Load() > 0 {
		t.Error("the server has asked an address that a token named")
	}
	// A good one, in whatever way it may be sent, and not in any other.
	for _, header := range []string{"Bearer " + good, "bearer " + good, "BEARER  " + good} {
		check(t, 200, s.URL, listSessions, "Authorization", header)
	}
	check(t, 200, s.URL, listSessions, "authorization", "Bearer "+f.by(p.key("first"), jwt.SigningMethodRS256, object{"kid": nil, "typ": "at+jwt"}, object{"aud": []string{"x", s.URL}}))
	check(t, 400, s.URL, listSessions, "Authorization", "Bearer "+good, "Authorization", "Bearer "+good)
	check(t, 400, s.URL, listSessions, "Authorization", "Bearer x", "Authorization", "Bearer "+good)
	for _, header := range []string{"", "Bearer", "Bearer  ", "Basic " + good, "Token " + good, good, "Bearer \"" + good + "\"", "Bearer " + good + ", Bearer x", "Bearer " + good + " x"} {
		check(t, 401, s.URL, listSessions, "Authorization", header)
	}
	refuseMegabyte(t, s.URL)
	check(t, 401, s.URL+"?access_token="+good+"&token="+good, listSessions)
	check(t, 401, s.URL, listSessions, "Cookie", "access_token="+good, "X-Access-Token", good, "Proxy-Authorization", "Bearer "+good)
	check(t, 200, s.URL, listSessions, "Authorization", "Bearer "+good)
}

// refuseMegabyte sends a token of a megabyte. A server that reads no further may close the connection before its answer is
// read.
func refuseMegabyte(t *testing.T, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(listSessions))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.Repeat("x", 1<<20))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a token of a megabyte: status %d", resp.StatusCode)
	}
}

func TestScopesThatLookAlike(t *testing.T) {
	p := startProvider(t, nil)
	s, f := serveBehind(t, p)
	for scope, want := range map[any]int{
		"sessions:read": 200, "sessions:read ": 200, "  sessions:read  openid": 200, "": 403, " ": 403, "sessions:rea": 403,
		"sessions:read\t": 403, "sessions:read\n": 403, "sessions:read\u00a0": 403, "sessions:read\u200b": 403, "sessions:read\x00": 403,
		"sеssions:read": 403, "sessions\uff1aread": 403, "Sessions:Read": 403, "sessions:*": 403, "*": 403, "sessions": 403,
		"sessions:read,openid": 403, "sessions:manage": 403, "xsessions:read": 403, "\"sessions:read\"": 403, "sessions%3Aread": 403,
	} {
		for _, claims := range []object{{"scope": scope}, {"scope": nil, "scp": scope}, {"scope": nil, "scp": []any{"openid", scope}}} {
			status, challenge, answer := post(t, s.URL, listSessions, "Authorization", "Bearer "+f.good(claims))
			if status != want {
				t.Errorf("%q: status %d, want %d: %s", claims, status, want, answer)
			}
			if status == 403 && (!strings.Contains(challenge, `error="insufficient_scope"`) || !strings.Contains(challenge, `scope="sessions:read"`) ||
				!strings.Contains(challenge, `resource_metadata="`+strings.TrimSuffix(s.URL, "/mcp")+`/.well-known/oauth-protected-resource/mcp"`)) {
				t.Errorf("%q: %s", claims, challenge)
			}
		}
	}
	if status, _, _ := post(t, s.URL, listSessions, "Authorization", "Bearer "+f.good(object{"scope": nil, "SCOPE": "sessions:read", "Scope": "sessions:read"})); status != 403 {
		t.Errorf("claims of another case: %d", status)
	}
}

// What a call is, its body says: no header, no second message and no second reading of it.
func TestTheBodyDecides(t *testing.T) {
	p := startProvider(t, nil)
	s, f := serveBehind(t, p)
	token := "Bearer " + f.good(nil)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	run := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`
	}
	for name, tt := range map[string]struct {
		body    string
		headers []string
		want    int
	}{
		"plainly":                    {run(`"name":"execute_python","arguments":{"code":"1"}`), nil, 403},
		"Mcp-Name of another tool":   {run(`"name":"execute_python","arguments":{"code":"1"}`), []string{"Mcp-Name", "list_sessions", "Mcp-Method", "tools/list"}, 403},
		"the same in 2026-07-28":     {run(`"name":"execute_python","arguments":{"code":"1"},` + meta), []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "list_sessions"}, 400},
		"in 2026-07-28":              {run(`"name":"execute_python","arguments":{"code":"1"},` + meta), []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "execute_python"}, 403},
		"name twice":                 {run(`"name":"list_sessions","name":"execute_python","arguments":{"code":"1"}`), nil, 400},
		"name twice, in two cases":   {run(`"name":"list_sessions","Name":"execute_python","arguments":{"code":"1"}`), nil, 400},
		"method twice":               {`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"execute_python"}}`, nil, 400},
		"a batch":                    {`[` + listSessions + `,` + run(`"name":"execute_python","arguments":{"code":"1"}`) + `]`, nil, 400},
		"two messages":               {listSessions + run(`"name":"execute_python","arguments":{"code":"1"}`), nil, 400},
		"a file as a resource":       {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"cellblock://sessions/s/files/a"}}`, nil, 403},
		"a resource of nobody's":     {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"cellblock://sessions/s/log"}}`, nil, 200},
		"a tool that is not there":   {run(`"name":"execute_cobol","arguments":{}`), nil, 200},
		"a tool's name with a space": {run(`"name":"execute_python ","arguments":{"code":"1"}`), nil, 200},
	} {
		status, challenge, answer := post(t, s.URL, tt.body, append([]string{"Authorization", token}, tt.headers...)...)
		if status != tt.want || strings.Contains(answer, `"result"`) {
			t.Errorf("%s: status %d, want %d: %s", name, status, tt.want, answer)
		}
		if status == 403 && !strings.Contains(challenge, "insufficient_scope") {
			t.Errorf("%s: %s", name, challenge)
		}
	}
	_, _, answer := post(t, s.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", token)
	if strings.Contains(answer, "execute_python") || !strings.Contains(answer, "list_sessions") {
		t.Errorf("listed: %s", answer)
	}
}

// Keys are exchanged while the server runs: the new one serves soon, and with the old one its tokens end, also those that the
// server has seen.
func TestKeysAreExchanged(t *testing.T) {
	p := startProvider(t, nil)
	s, f := serveBehind(t, p)
	other := startProvider(t, nil)
	older := f.good(nil)
	status := func(token string) int {
		got, _, _ := post(t, s.URL, listSessions, "Authorization", "Bearer "+token)
		return got
	}
	if got := status(older); got != 200 {
		t.Fatalf("before: %d", got)
	}
	for name, token := range map[string]string{
		"another issuer's key under our key's name": f.by(other.key("first"), jwt.SigningMethodRS256, nil, nil),
		"another issuer's good token":               forger{t, other, f.audience}.good(nil),
	} {
		if got := status(token); got != 401 {
			t.Errorf("%s: %d", name, got)
		}
	}
	p.exchangeKeys(t, "second")
	newer := f.by(p.key("second"), jwt.SigningMethodRS256, object{"kid": "second"}, nil)
	until(t, "the new key serves", func() bool { return status(newer) == 200 })
	if got := status(older); got != 401 {
		t.Errorf("a token of the withdrawn key: %d", got)
	}
}

// A server that cannot reach its issuer starts, says so, and serves as soon as it can.
func TestIssuerThatComesLater(t *testing.T) {
	needLocal(t)
	p := startProvider(t, nil)
	var there atomic.Bool
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !there.Load() {
			http.Error(w, "not yet", http.StatusBadGateway)
			return
		}
		http.Redirect(w, r, p.issuer+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(gate.Close)
	i := rig.Install(t, "--provisioner", "local", "--pool-size", "0")
	i.Env = []string{"MCP_ISSUER=" + p.issuer, "MCP_JWKS_URI=" + gate.URL + "/keys"}
	s := i.Serve(t)
	base := strings.TrimSuffix(s.URL, "/mcp")
	token := forger{t, p, s.URL}.good(nil)
	resp, body := get(t, base+"/ready", nil)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "keys of their issuer") {
		t.Errorf("ready: %d %s", resp.StatusCode, body)
	}
	if resp, body := get(t, base+"/health", nil); resp.StatusCode != 503 || !strings.Contains(body, "keys of their issuer") || strings.Contains(body, gate.URL) {
		t.Errorf("health: %d %s", resp.StatusCode, body)
	}
	if status, _, answer := post(t, s.URL, listSessions, "Authorization", "Bearer "+token); status != 503 || !strings.Contains(answer, "could not be fetched") {
		t.Errorf("a call: %d %s", status, answer)
	}
	if !strings.Contains(s.Log(), "the issuer's keys could not be fetched") || !strings.Contains(s.Log(), "status 502") {
		t.Errorf("the log:\n%s", s.Log())
	}
	there.Store(true)
	until(t, "the server is ready", func() bool { resp, _ := get(t, base+"/ready", nil); return resp.StatusCode == 200 })
	if status, _, answer := post(t, s.URL, listSessions, "Authorization", "Bearer "+token); status != 200 {
		t.Errorf("a call, then: %d %s", status, answer)
	}
}

// until waits for what must come soon.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(45 * time.Second); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 45 s: %s", what)
		}
	}
}
