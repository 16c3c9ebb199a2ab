package auth

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

func TestConfigFromEnv(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		want    EnvConfig
	}{
		{"nothing", nil, EnvConfig{dev: true}},
		{"only others'", []string{"PATH=/bin", "HOME=/root", "XMCP_ISSUER=x", "MCP=1", "=C:=C:\\", ""}, EnvConfig{dev: true}},
		{"a client's", []string{"MCP_TIMEOUT=30000", "MCP_TOOL_TIMEOUT="}, EnvConfig{dev: true}},
		{"a key", []string{"MCP_PUBLIC_KEY_PATH=/k.pem"}, EnvConfig{PublicKeyPath: "/k.pem", Algorithms: []string{"RS256"}}},
		{
			"all", []string{"MCP_PUBLIC_KEY_PATH=/k.pem", "MCP_ISSUER=https://i", "MCP_AUDIENCE=a, b c", "MCP_ALGORITHM=ES256"},
			EnvConfig{PublicKeyPath: "/k.pem", Issuer: "https://i", Audiences: []string{"a", "b", "c"}, Algorithms: []string{"ES256"}},
		},
		{"discovery", []string{"MCP_ISSUER=https://i"}, EnvConfig{Issuer: "https://i", Algorithms: []string{"RS256"}}},
		{
			"keys of an issuer", []string{"MCP_ISSUER=https://i", "MCP_JWKS_URI=http://127.0.0.1/jwks", "MCP_ALGORITHM=RS256,ES256",
				"MCP_SCOPE_CLAIM=scope, realm_access.roles"},
			EnvConfig{Issuer: "https://i", JWKSURI: "http://127.0.0.1/jwks", Algorithms: []string{"RS256", "ES256"},
				ScopeClaims: []ClaimPath{{"scope"}, {"realm_access", "roles"}}},
		},
		{
			"spaces around, = inside", []string{"MCP_PUBLIC_KEY_PATH= /k=.pem ", "MCP_AUDIENCE=https://a/?x=y"},
			EnvConfig{PublicKeyPath: "/k=.pem", Audiences: []string{"https://a/?x=y"}, Algorithms: []string{"RS256"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ConfigFromEnv(tt.environ)
			if err != nil {
				t.Fatal(fault.Text(err))
			}
			if len(got.Audiences) == 0 {
				got.Audiences = nil
			}
			if !reflect.DeepEqual(got, tt.want) || got.Dev() != tt.want.dev {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestConfigFromEnvRefuses(t *testing.T) {
	const key = "MCP_PUBLIC_KEY_PATH=/k.pem"
	tests := []struct {
		environ string // entries with | between
		kind    fault.Kind
		want    string // in message and hint
	}{
		{"MCP_JWKS_URL=https://i/jwks", fault.Invalid, "Did you mean MCP_JWKS_URI?"},
		{"MCP_AUDIENCES=a", fault.Invalid, "Did you mean MCP_AUDIENCE?"},
		{"MCP_ISUER=a", fault.Invalid, "Did you mean MCP_ISSUER?"},
		{"MCP_ALGORITHMS=a", fault.Invalid, "Did you mean MCP_ALGORITHM?"},
		{"MCP_PUBLIC_KEY=a", fault.Invalid, "Did you mean MCP_PUBLIC_KEY_PATH?"},
		{"mcp_issuer=a", fault.Invalid, "Did you mean MCP_ISSUER? Names are in capitals."},
		{key + "|MCP_TIMEOUTS=5", fault.Invalid, "Unset it. Known are MCP_JWKS_URI"},
		{"MCP_=5", fault.Invalid, "unknown environment variable MCP_"},
		{"MCP_PUBLIC_KEY_PATH=", fault.Invalid, "set but empty"},
		{key + "|MCP_AUDIENCE= ", fault.Invalid, "MCP_AUDIENCE is set but empty"},
		{key + "|MCP_AUDIENCE=,", fault.Invalid, "MCP_AUDIENCE names nothing"},
		{key + "|MCP_ALGORITHM=HS256", fault.Invalid, "Shared secrets"},
		{key + "|MCP_ALGORITHM=none", fault.Invalid, "Unsigned"},
		{key + "|MCP_ALGORITHM=RS256,HS256", fault.Invalid, "Shared secrets"},
		{key + "|MCP_ALGORITHM=,", fault.Invalid, "MCP_ALGORITHM names nothing"},
		{key + "|MCP_SCOPE_CLAIM=a..b", fault.Invalid, "no path of a claim"},
		{"MCP_AUDIENCE=a", fault.Invalid, "none says where the keys are"},
		{"MCP_ALGORITHM=RS256", fault.Invalid, "none says where the keys are"},
		{"MCP_JWKS_URI=https://i/jwks|" + key, fault.Invalid, "both set"},
		{"MCP_JWKS_URI=https://i/jwks", fault.Invalid, "Set MCP_ISSUER"},
		{"MCP_JWKS_URI=http://i/jwks|MCP_ISSUER=https://i", fault.Invalid, "not https"},
		{"MCP_JWKS_URI=file:///jwks|MCP_ISSUER=https://i", fault.Invalid, "no address"},
		{"MCP_JWKS_URI=https://user:word@i/jwks|MCP_ISSUER=https://i", fault.Invalid, "no address"},
		{"MCP_ISSUER=http://i", fault.Invalid, "not https"},
		{"MCP_ISSUER=i", fault.Invalid, "no address"},
	}
	for _, tt := range tests {
		t.Run(tt.environ, func(t *testing.T) {
			c, err := ConfigFromEnv(strings.Split(tt.environ, "|"))
			if err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			if text := fault.Text(err); fault.KindOf(err) != tt.kind || !strings.Contains(text, tt.want) || fault.Hint(err) == "" {
				t.Errorf("%v: %s\nwant %v with %q", fault.KindOf(err), text, tt.kind, tt.want)
			}
			if c.Dev() {
				t.Error("an error led to dev mode")
			}
		})
	}
}

func TestEnvVerifier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, publicPEM(&rsaKey().PublicKey), 0o644); err != nil {
		t.Fatal(err)
	}
	claims := jwt.MapClaims{"exp": 1 << 40, "iat": nil, "nbf": nil}
	check := func(v Verifier, changes jwt.MapClaims) error {
		for name, value := range claims {
			changes[name] = value
		}
		_, err := v(context.Background(), token{claims: changes}.sign(t))
		return err
	}
	c := must(ConfigFromEnv([]string{"MCP_PUBLIC_KEY_PATH=" + path}))
	open := func(audience string) Verifier {
		a := must(c.Open(t.Context(), audience, nil))
		defer a.Close()
		if serving, problem := a.Health(); !serving || problem != nil {
			t.Errorf("a key of one's own: %v, %v", serving, problem)
		}
		return a.Verifier
	}
	v := open("https://default/mcp")
	if err := check(v, jwt.MapClaims{"aud": "https://default/mcp", "iss": "anybody"}); err != nil {
		t.Error(err)
	}
	if err := check(v, jwt.MapClaims{}); err == nil {
		t.Error("another audience was accepted")
	}
	if _, err := c.Open(t.Context(), "", nil); err == nil {
		t.Error("no audience at all was accepted")
	}
	c = must(ConfigFromEnv([]string{"MCP_PUBLIC_KEY_PATH=" + path, "MCP_AUDIENCE=mine", "MCP_ISSUER=" + testIssuer}))
	v = open("https://default/mcp")
	if err := check(v, jwt.MapClaims{"aud": "mine"}); err != nil {
		t.Error(err)
	}
	if err := check(v, jwt.MapClaims{"aud": "https://default/mcp"}); err == nil {
		t.Error("the default audience was accepted although another is set")
	}
	if err := check(v, jwt.MapClaims{"aud": "mine", "iss": "other"}); err == nil {
		t.Error("another issuer was accepted")
	}
	if _, err := (EnvConfig{PublicKeyPath: path + "x"}).Open(t.Context(), "a", nil); err == nil {
		t.Error("a missing key was accepted")
	}
}

func TestAuthorizationServer(t *testing.T) {
	for issuer, want := range map[string]string{"": "", "cells": "", "urn:cells": "", "https://i/x": "https://i/x", "http://127.0.0.1:1": "http://127.0.0.1:1"} {
		if got := (EnvConfig{Issuer: issuer}).AuthorizationServer(); got != want {
			t.Errorf("%q: %q", issuer, got)
		}
	}
}

func TestAsksForScopes(t *testing.T) {
	for claim, want := range map[string]bool{"": true, "scope": true, "roles,scp": true, "permissions": false, "realm_access.roles": false} {
		environ := []string{"MCP_ISSUER=https://i"}
		if claim != "" {
			environ = append(environ, "MCP_SCOPE_CLAIM="+claim)
		}
		if got := must(ConfigFromEnv(environ)).AsksForScopes(); got != want {
			t.Errorf("%q: %v", claim, got)
		}
	}
}

func FuzzConfigFromEnv(f *testing.F) {
	f.Add("MCP_ISSUER", "x")
	f.Add("mcp_", "")
	f.Fuzz(func(t *testing.T, name, value string) {
		c, err := ConfigFromEnv([]string{name + "=" + value})
		if err == nil && !c.Dev() && c.PublicKeyPath == "" && c.Issuer == "" {
			t.Errorf("%q=%q gave %+v: neither dev mode nor keys", name, value, c)
		}
	})
}
