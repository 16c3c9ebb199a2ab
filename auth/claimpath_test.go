package auth

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

func TestParseClaimPath(t *testing.T) {
	for text, want := range map[string]ClaimPath{
		"permissions":                                    {"permissions"},
		"realm_access.roles":                             {"realm_access", "roles"},
		"https://cells.example/v1.roles":                 {"https://cells.example/v1.roles"},
		"urn:cells:roles":                                {"urn:cells:roles"},
		"/resource_access/https:~1~1cells.example/roles": {"resource_access", "https://cells.example", "roles"},
		"/a~0b/c.d":                                      {"a~b", "c.d"},
		"/~01":                                           {"~1"},
	} {
		got, err := ParseClaimPath(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "a.", "a..b", "/", "/a/", "/a~2", "/a~", "a\x00b", strings.Repeat("a.", 8) + "a", strings.Repeat("a", 2000)} {
		if got, err := ParseClaimPath(text); err == nil || fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" {
			t.Errorf("%.20q: %q, %v", text, got, err)
		}
	}
}

func FuzzParseClaimPath(f *testing.F) {
	for _, seed := range []string{"a.b", "/a/b", "https://x/y", "/~0~1", "..", "/~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := ParseClaimPath(text)
		if err != nil {
			return
		}
		if len(path) == 0 || slices.Contains(path, "") {
			t.Errorf("%q gave %q", text, path)
		}
		var inner any = "python:execute"
		for _, name := range slices.Backward(path) {
			inner = map[string]any{name: inner}
		}
		if got := path.in(inner.(map[string]any)); got != "python:execute" {
			t.Errorf("%q: %q finds %v", text, path, got)
		}
		if path.in(jwt.MapClaims{}) != nil {
			t.Errorf("%q finds something where nothing is", text)
		}
	})
}

func TestScopeClaims(t *testing.T) {
	roles := jwt.MapClaims{
		"scope": "openid profile", "permissions": []string{"python:execute", "files:read"},
		"realm_access": map[string]any{"roles": []string{"sessions:read", "offline_access"}}, "https://cells.example/roles": "files:write",
		"text": "a", "number": 1,
	}
	for paths, want := range map[string][]string{
		"":                                      {"openid", "profile"},
		"permissions":                           {"python:execute", "files:read"},
		"realm_access.roles":                    {"sessions:read", "offline_access"},
		"https://cells.example/roles,text":      {"files:write", "a"},
		"permissions,realm_access.roles,absent": {"python:execute", "files:read", "sessions:read", "offline_access"},
		"realm_access.roles.0":                  nil,
		"text.more":                             nil,
	} {
		c := testConfig()
		c.ScopeClaims = must(ConfigFromEnv([]string{"MCP_ISSUER=https://i", "MCP_SCOPE_CLAIM=" + orScope(paths)})).ScopeClaims
		p, err := must(NewKeyVerifier(c))(context.Background(), token{claims: roles}.sign(t))
		if err != nil || !slices.Equal(p.Scopes, want) {
			t.Errorf("%q: %q, %v", paths, p.Scopes, err)
		}
	}
	for _, path := range []ClaimPath{{"number"}, {"realm_access"}} {
		c := testConfig()
		c.ScopeClaims = []ClaimPath{path}
		if p, err := must(NewKeyVerifier(c))(context.Background(), token{claims: roles}.sign(t)); err == nil {
			t.Errorf("%s gave %q", path, p.Scopes)
		}
	}
}

func orScope(paths string) string {
	if paths == "" {
		return "scope"
	}
	return paths
}

func TestScopePrefix(t *testing.T) {
	c := testConfig()
	c.ScopePrefix = "api://cells/"
	claims := jwt.MapClaims{"scope": "api://cells/python:execute files:read api://other/files:write api://cells/ openid"}
	p, err := must(NewKeyVerifier(c))(context.Background(), token{claims: claims}.sign(t))
	if want := []string{"python:execute", "files:read", "api://other/files:write", "openid"}; err != nil || !slices.Equal(p.Scopes, want) {
		t.Errorf("%q, %v", p.Scopes, err)
	}
	if _, err := ConfigFromEnv([]string{"MCP_ISSUER=https://i", "MCP_SCOPE_PREFIX=a b"}); err == nil {
		t.Error("a prefix with a space is accepted")
	}
}

// Only a space separates scopes, and only what is written exactly as it should is one.
func TestScopesLookAlike(t *testing.T) {
	for scope, want := range map[string]bool{
		"python:execute": true, "python:execute ": true, " python:execute": true, "a  python:execute b": true,
		"python:execute\t": false, "python:execute\n": false, "python:execute\u00a0": false, "python:execute\u2003x": false,
		"python:execute\u200b": false, "pуthon:execute": false, "python\uff1aexecute": false, "python:execut\u00e9": false,
		"Python:execute": false, "python:execute,x": false, "python:*": false, "*": false, "": false, "python:execute\x00": false,
		"python:execute\"": false, "python": false,
	} {
		for _, claim := range []any{scope, []string{scope}} {
			p, err := testVerifier(t)(context.Background(), token{claims: jwt.MapClaims{"scope": claim}}.sign(t))
			if err != nil || p.Has("python:execute") != want || p.Has("") {
				t.Errorf("%q: %q, %v", claim, p.Scopes, err)
			}
		}
	}
}

func FuzzScopes(f *testing.F) {
	for _, seed := range []string{"python:execute", "a  b", "\u00a0", "a\tb", "\"", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		scopes, ok := scopesIn(text)
		if !ok {
			t.Fatal("a text was refused")
		}
		for _, scope := range scopes {
			if !isScope(scope) || !slices.Contains(strings.Split(text, " "), scope) {
				t.Errorf("%q holds %q", text, scope)
			}
		}
	})
}

func TestDuplicateClaims(t *testing.T) {
	for _, part := range []string{
		`{"sub":"ada","sub":"eve"}`, `{"a":{"b":[1,{"c":1,"c":2}]}}`, `{"sub":"ada","\u0073ub":"eve"}`, `{"a":[{}],"b":1,"a":2}`,
	} {
		if err := checkUnique(b64("{}") + "." + b64(part) + ".x"); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", part, err)
		}
		if err := checkUnique(b64(part) + "." + b64("{}") + ".x"); err == nil {
			t.Errorf("%s in a header is accepted", part)
		}
	}
	for _, part := range []string{`{}`, `{"a":[{"b":1},{"b":1}],"b":{"b":null}}`, `{"sub":"a","Sub":"b"}`, `{"a":["a","a"]}`} {
		if err := checkUnique(b64("{}") + "." + b64(part) + ".x"); err != nil {
			t.Errorf("%s: %v", part, err)
		}
	}
	claims := `{"iss":"` + testIssuer + `","aud":"` + testAudience + `","exp":1900000000,"sub":"ada","sub":"eve"}`
	signed := signRaw(t, claims)
	if p, err := testVerifier(t)(context.Background(), signed); err == nil {
		t.Errorf("it speaks for %s", p.Subject)
	}
}
