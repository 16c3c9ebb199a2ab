package e2e

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/e2e/rig"
)

// devKey reads the development key, to forge what a server must refuse.
func devKey(t *testing.T, dir string) *rsa.PrivateKey {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "dev_private_key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*rsa.PrivateKey)
}

func claims(change func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "cellblock-dev", "aud": "cellblock", "sub": "forger", "scope": "python:execute sessions:read",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	if change != nil {
		change(c)
	}
	return c
}

func signed(t *testing.T, method jwt.SigningMethod, key any, c jwt.MapClaims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(method, c).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

const callPython = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_python","arguments":{"code":"1"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// post sends one raw request to the endpoint.
func post(t *testing.T, url, token, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	header = maps.Clone(header)
	if header == nil {
		header = http.Header{}
	}
	if _, given := header["Authorization"]; token != "" && !given {
		header.Set("Authorization", "Bearer "+token)
	}
	return rig.Post(t, url, body, header)
}

var modernHeaders = http.Header{
	"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"execute_python"},
}

// Whoever has no good token is told 401 or 403 and where to get one; the log has the reason and never the token.
func TestTokens(t *testing.T) {
	s := start(t, "auto")
	key := devKey(t, s.DataDir)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(s.DataDir, "dev_public_key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	good := signed(t, jwt.SigningMethodRS256, key, claims(nil))
	tests := map[string]struct {
		token string
		want  int
	}{
		"good":                        {good, http.StatusOK},
		"none at all":                 {"", http.StatusUnauthorized},
		"garbage":                     {"garbage", http.StatusUnauthorized},
		"expired":                     {signed(t, jwt.SigningMethodRS256, key, claims(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Hour).Unix() })), http.StatusUnauthorized},
		"no expiry":                   {signed(t, jwt.SigningMethodRS256, key, claims(func(c jwt.MapClaims) { delete(c, "exp") })), http.StatusUnauthorized},
		"wrong audience":              {signed(t, jwt.SigningMethodRS256, key, claims(func(c jwt.MapClaims) { c["aud"] = "someone-else" })), http.StatusUnauthorized},
		"wrong issuer":                {signed(t, jwt.SigningMethodRS256, key, claims(func(c jwt.MapClaims) { c["iss"] = "https://evil.example" })), http.StatusUnauthorized},
		"alg none":                    {signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(nil)), http.StatusUnauthorized},
		"HS256 by the public key":     {signed(t, jwt.SigningMethodHS256, public, claims(nil)), http.StatusUnauthorized},
		"another algorithm, same key": {signed(t, jwt.SigningMethodPS256, crypto.PrivateKey(key), claims(nil)), http.StatusUnauthorized},
		"a stranger's key":            {signed(t, jwt.SigningMethodRS256, stranger, claims(nil)), http.StatusUnauthorized},
		"no scope for it":             {signed(t, jwt.SigningMethodRS256, key, claims(func(c jwt.MapClaims) { c["scope"] = "sessions:read" })), http.StatusForbidden},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resp, body := post(t, s.URL, tt.token, callPython, modernHeaders)
			if resp.StatusCode != tt.want {
				t.Fatalf("status %d, want %d:\n%s", resp.StatusCode, tt.want, body)
			}
			if challenge := resp.Header.Get("WWW-Authenticate"); tt.want != http.StatusOK && !strings.HasPrefix(challenge, "Bearer") {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
			if tt.want == http.StatusForbidden {
				wantText(t, resp.Header.Get("WWW-Authenticate"), "insufficient_scope", "python:execute")
			}
			if tt.token != "" && len(tt.token) > 20 && strings.Contains(s.Log(), tt.token) {
				t.Error("the token is in the log")
			}
		})
	}
}

// tools/list shows only what the token may call.
func TestToolsListFollowsScopes(t *testing.T) {
	s := start(t, "auto")
	c := s.Connect(t, s.Token(t, "--scopes", "sessions:read"), false)
	_, err := c.Call(t.Context(), "execute_python", map[string]any{"code": "1"}, nil)
	if err == nil {
		t.Error("the call went through without python:execute")
	}
	_, body := post(t, s.URL, s.Token(t, "--scopes", "sessions:read"),
		strings.ReplaceAll(strings.Replace(callPython, "tools/call", "tools/list", 1), `"name":"execute_python","arguments":{"code":"1"},`, ""),
		http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}})
	if strings.Contains(body, "execute_python") || !strings.Contains(body, "list_sessions") {
		t.Errorf("tools/list:\n%s", body)
	}
}

// Two owners' sessions of one name are two sessions, and neither sees, stops or closes the other's.
func TestOwnersAreApart(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		alice := s.Connect(t, s.Token(t, "--subject", "alice"), false)
		bob := s.Connect(t, s.Token(t, "--subject", "bob"), false)
		python(t, alice, "analysis", "secret = 'alice'; open('only-of-alice.txt', 'w').write(secret)")
		r := python(t, bob, "analysis", "import os; print('secret' in globals(), os.listdir('.'))")
		wantText(t, r.Text, "False []")
		r = python(t, bob, "analysis", `import os
found = []
for top in sorted(set(os.listdir('/')) - {'proc', 'sys', 'dev'}):
    for folder, _, files in os.walk('/' + top):
        found += [os.path.join(folder, f) for f in files if f == 'only-of-alice.txt']
print(found)`)
		wantText(t, r.Text, "[]")
		if text := call(t, bob, "list_sessions", nil).Text; strings.Count(text, "analysis") != 1 {
			t.Errorf("bob sees:\n%s", text)
		}
		call(t, bob, "close_session", map[string]any{"session_id": "analysis", "delete_files": true})
		wantText(t, python(t, alice, "analysis", "print(secret, open('only-of-alice.txt').read())").Text, "alice alice")
	})
}

// Browsers of other sites get nowhere.
func TestForeignOriginAndHost(t *testing.T) {
	s := start(t, "auto")
	token := s.Token(t)
	for name, header := range map[string]http.Header{
		"origin": {"Origin": {"https://evil.example"}},
		"null":   {"Origin": {"null"}},
	} {
		for k, v := range modernHeaders {
			header[k] = v
		}
		if resp, body := post(t, s.URL, token, callPython, header); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d\n%s", name, resp.StatusCode, body)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(callPython))
	req.Host = "evil.example"
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("Host evil.example: status %d", resp.StatusCode)
	}
}

// Anybody may ask for health; it holds no secret.
func TestHealth(t *testing.T) {
	s := start(t, "auto")
	resp, err := http.Get(strings.TrimSuffix(s.URL, "/mcp") + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var health map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&health); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || health["status"] != "ok" {
		t.Errorf("status %d: %v", resp.StatusCode, health)
	}
}

// Without an identity provider the server refuses to listen where others can reach it.
func TestDevModeIsForLoopbackOnly(t *testing.T) {
	out, code := cellblock(t, nil, "", "serve", "--addr", "0.0.0.0:0", "--data-dir", t.TempDir(), "--provisioner", "local")
	if code == 0 || !strings.Contains(out, "loopback") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}
