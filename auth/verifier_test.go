package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

func TestVerifierAccepts(t *testing.T) {
	tests := []struct {
		name   string
		token  token
		scopes []string
	}{
		{"plain", token{}, []string{"python:execute", "sessions:read"}},
		{"audience in a list", token{claims: jwt.MapClaims{"aud": []string{"x", testAudience}}}, []string{"python:execute", "sessions:read"}},
		{"second configured audience", token{claims: jwt.MapClaims{"aud": "other", "scope": "a"}}, []string{"a"}},
		{"scp as a list", token{claims: jwt.MapClaims{"scope": nil, "scp": []string{"a", "b"}}}, []string{"a", "b"}},
		{"scp as text", token{claims: jwt.MapClaims{"scope": nil, "scp": "a  b"}}, []string{"a", "b"}},
		{"scope before scp", token{claims: jwt.MapClaims{"scope": "a", "scp": "b"}}, []string{"a"}},
		{"no scope", token{claims: jwt.MapClaims{"scope": nil}}, nil},
		{"typ at+jwt", token{header: map[string]any{"typ": "at+jwt"}, claims: jwt.MapClaims{"scope": "a"}}, []string{"a"}},
		{"typ as a media type", token{header: map[string]any{"typ": "application/AT+JWT"}, claims: jwt.MapClaims{"scope": "a"}}, []string{"a"}},
		{"kid nonsense", token{header: map[string]any{"kid": "../../etc/passwd"}, claims: jwt.MapClaims{"scope": "a"}}, []string{"a"}},
		{"expired within leeway", token{claims: jwt.MapClaims{"exp": noon.Add(-59 * time.Second).Unix(), "scope": "a"}}, []string{"a"}},
		{"nbf within leeway", token{claims: jwt.MapClaims{"nbf": noon.Add(59 * time.Second).Unix(), "scope": "a"}}, []string{"a"}},
		{"no iat, no nbf", token{claims: jwt.MapClaims{"iat": nil, "nbf": nil, "scope": "a"}}, []string{"a"}},
		{"names matched exactly", token{claims: jwt.MapClaims{"SCOPE": "admin", "Sub": "eve", "scope": "a"}}, []string{"a"}},
	}
	v := testVerifier(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := v(context.Background(), tt.token.sign(t))
			if err != nil {
				t.Fatal(fault.Text(err))
			}
			if p.Issuer != testIssuer || p.Subject != "ada" || !reflect.DeepEqual(p.Scopes, tt.scopes) {
				t.Errorf("got %+v, want ada of %s with %q", p, testIssuer, tt.scopes)
			}
		})
	}
}

func TestVerifierRefuses(t *testing.T) {
	none := token{method: jwt.SigningMethodNone, key: jwt.UnsafeAllowNoneSignatureType}
	der := must(x509.MarshalPKIXPublicKey(&rsaKey().PublicKey))
	tests := []struct {
		name  string
		token string
		want  string // in the message
	}{
		{"empty", "", "not a JSON Web Token"},
		{"garbage", "garbage", "not a JSON Web Token"},
		{"two dots", "..", "not a JSON Web Token"},
		{"four parts", "a.b.c.d", "not a JSON Web Token"},
		{"JSON null", b64("null") + "." + b64("null") + ".", "signature"},
		{"alg not text", b64(`{"alg":5}`) + "." + b64("{}") + ".", "signature"},
		{"alg none", none.sign(t), "not signed with RS256"},
		{"alg NONE", b64(`{"alg":"NONE"}`) + "." + b64(`{"sub":"eve"}`) + ".", "signature"},
		{"HS256 with the public key's PEM", token{method: jwt.SigningMethodHS256, key: publicPEM(&rsaKey().PublicKey)}.sign(t), "not signed with RS256"},
		{"HS256 with the public key's DER", token{method: jwt.SigningMethodHS256, key: der}.sign(t), "not signed with RS256"},
		{"HS256 with PKCS #1", token{method: jwt.SigningMethodHS256, key: x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey)}.sign(t), "not signed with RS256"},
		{"another RSA key", token{key: otherKey()}.sign(t), "signature"},
		{"right key, other algorithm", token{method: jwt.SigningMethodRS512}.sign(t), "not signed with RS256"},
		{"right key, PSS", token{method: jwt.SigningMethodPS256}.sign(t), "not signed with RS256"},
		{"EC key", token{method: jwt.SigningMethodES256, key: ecKey()}.sign(t), "not signed with RS256"},
		{"signature cut off", strings.TrimRight(cutLast(token{}.sign(t)), "."), "not a JSON Web Token"},
		{"signature empty", cutLast(token{}.sign(t)), "signature"},
		{"claims exchanged", exchangeClaims(token{}.sign(t)), "signature"},
		{"expired", token{claims: jwt.MapClaims{"exp": noon.Add(-61 * time.Second).Unix()}}.sign(t), "expired"},
		{"no exp", token{claims: jwt.MapClaims{"exp": nil}}.sign(t), "lacks exp"},
		{"exp 0", token{claims: jwt.MapClaims{"exp": 0}}.sign(t), "lacks exp"},
		{"exp as text", token{claims: jwt.MapClaims{"exp": "tomorrow"}}.sign(t), "wrong type"},
		{"nbf ahead", token{claims: jwt.MapClaims{"nbf": noon.Add(61 * time.Second).Unix()}}.sign(t), "not valid yet"},
		{"iat ahead", token{claims: jwt.MapClaims{"iat": noon.Add(61 * time.Second).Unix()}}.sign(t), "not valid yet"},
		{"wrong issuer", token{claims: jwt.MapClaims{"iss": "https://evil.example"}}.sign(t), `another issuer ("https://evil.example")`},
		{"issuer with a slash more", token{claims: jwt.MapClaims{"iss": testIssuer + "/"}}.sign(t), "another issuer"},
		{"no issuer", token{claims: jwt.MapClaims{"iss": nil}}.sign(t), "lacks iss"},
		{"wrong audience", token{claims: jwt.MapClaims{"aud": "https://cells.example"}}.sign(t), `another audience ("https://cells.example")`},
		{"wrong audiences", token{claims: jwt.MapClaims{"aud": []string{"a", "b"}}}.sign(t), `another audience ("a b")`},
		{"no audience", token{claims: jwt.MapClaims{"aud": nil}}.sign(t), "lacks aud"},
		{"empty audiences", token{claims: jwt.MapClaims{"aud": []string{}}}.sign(t), "lacks aud"},
		{"audience of another type", token{claims: jwt.MapClaims{"aud": map[string]any{testAudience: 1}}}.sign(t), "lacks aud"},
		{"no exp, no aud", token{claims: jwt.MapClaims{"aud": nil, "exp": nil}}.sign(t), "lacks exp and aud"},
		{"no subject", token{claims: jwt.MapClaims{"sub": nil}}.sign(t), "no subject"},
		{"subject a number", token{claims: jwt.MapClaims{"sub": 7}}.sign(t), "no subject"},
		{"subject with NUL", token{claims: jwt.MapClaims{"sub": "a\x00b"}}.sign(t), "characters"},
		{"subject not UTF-8", token{claims: jwt.MapClaims{"sub": "a\uFFFDb"}}.sign(t), "characters"},
		{"subject too long", token{claims: jwt.MapClaims{"sub": strings.Repeat("a", 1025)}}.sign(t), "too long"},
		{"scope a number", token{claims: jwt.MapClaims{"scope": 1}}.sign(t), "scope is neither"},
		{"scp of numbers", token{claims: jwt.MapClaims{"scope": nil, "scp": []int{1}}}.sign(t), "scp is neither"},
		{"crit", token{header: map[string]any{"crit": []string{"b64"}, "b64": false}}.sign(t), "crit"},
		{"crit empty", token{header: map[string]any{"crit": []string{}}}.sign(t), "crit"},
		{"crit null", token{header: map[string]any{"crit": nil}}.sign(t), "crit"},
		{"typ of another token", token{header: map[string]any{"typ": "logout+jwt"}}.sign(t), "not an access token"},
		{"typ a number", token{header: map[string]any{"typ": 1}}.sign(t), "not an access token"},
		{"huge", token{claims: jwt.MapClaims{"pad": strings.Repeat("x", MaxToken)}}.sign(t), "at most 16384"},
	}
	v := testVerifier(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := v(context.Background(), tt.token)
			if err == nil {
				t.Fatalf("accepted as %+v", p)
			}
			if !reflect.DeepEqual(p, Principal{}) {
				t.Errorf("an error and a principal: %+v", p)
			}
			if kind := fault.KindOf(err); kind != fault.Unauthenticated {
				t.Errorf("kind %v", kind)
			}
			if fault.Hint(err) == "" {
				t.Error("no hint")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("message %q, want %q in it", err, tt.want)
			}
			if len(tt.token) > 20 && strings.Contains(fault.Text(err), tt.token[len(tt.token)/2:]) {
				t.Error("the error holds the token")
			}
		})
	}
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// cutLast removes the signature.
func cutLast(token string) string { return token[:strings.LastIndex(token, ".")+1] }

// exchangeClaims keeps header and signature.
func exchangeClaims(token string) string {
	parts := strings.Split(token, ".")
	parts[1] = b64(`{"iss":"` + testIssuer + `","sub":"root","aud":"` + testAudience + `","exp":9999999999}`)
	return strings.Join(parts, ".")
}

func TestVerifierWithoutIssuer(t *testing.T) {
	c := testConfig()
	c.Issuer = ""
	v := must(NewKeyVerifier(c))
	for want, iss := range map[string]any{"": nil, "https://x.example": "https://x.example"} {
		p, err := v(context.Background(), token{claims: jwt.MapClaims{"iss": iss}}.sign(t))
		if err != nil || p.Issuer != want {
			t.Errorf("iss %v: %+v, %v", iss, p, err)
		}
	}
	if _, err := v(context.Background(), token{claims: jwt.MapClaims{"iss": 5}}.sign(t)); err == nil {
		t.Error("an issuer that is no text was accepted")
	}
}

func TestVerifierKeysAndAlgorithms(t *testing.T) {
	for _, tt := range []struct {
		algorithm string
		key       any
		public    any
	}{
		{"RS384", rsaKey(), &rsaKey().PublicKey},
		{"PS256", rsaKey(), &rsaKey().PublicKey},
		{"ES256", ecKey(), &ecKey().PublicKey},
		{"EdDSA", edKey(), edKey().Public()},
	} {
		t.Run(tt.algorithm, func(t *testing.T) {
			c := testConfig()
			c.PublicKey, c.Algorithms = tt.public, []string{tt.algorithm}
			v, err := NewKeyVerifier(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v(context.Background(), token{method: jwt.GetSigningMethod(tt.algorithm), key: tt.key}.sign(t)); err != nil {
				t.Error(err)
			}
			if _, err := v(context.Background(), token{}.sign(t)); err == nil {
				t.Error("RS256 was accepted too")
			}
		})
	}
}

func TestNewKeyVerifierRefuses(t *testing.T) {
	small := must(rsa.GenerateKey(rand.Reader, 1024))
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	tests := []struct {
		name   string
		change func(*KeyConfig)
		want   string
	}{
		{"no key", func(c *KeyConfig) { c.PublicKey = nil }, "no key"},
		{"bytes as a key", func(c *KeyConfig) { c.PublicKey = []byte("secret") }, "unknown kind"},
		{"RSA key by value", func(c *KeyConfig) { c.PublicKey = rsaKey().PublicKey }, "unknown kind"},
		{"private key", func(c *KeyConfig) { c.PublicKey = rsaKey() }, "unknown kind"},
		{"small RSA key", func(c *KeyConfig) { c.PublicKey = &small.PublicKey }, "1024 bits is too small"},
		{"odd curve", func(c *KeyConfig) { c.PublicKey = &p224.PublicKey }, "P-224"},
		{"short Ed25519 key", func(c *KeyConfig) { c.PublicKey = ed25519.PublicKey("short") }, "Ed25519"},
		{"none", func(c *KeyConfig) { c.Algorithms = []string{"none"} }, `"none"`},
		{"HS256", func(c *KeyConfig) { c.Algorithms = []string{"HS256"} }, `"HS256"`},
		{"HS512 beside RS256", func(c *KeyConfig) { c.Algorithms = []string{"RS256", "HS512"} }, `"HS512"`},
		{"lower case", func(c *KeyConfig) { c.Algorithms = []string{"rs256"} }, `"rs256"`},
		{"empty algorithm", func(c *KeyConfig) { c.Algorithms = []string{""} }, `""`},
		{"EC algorithm, RSA key", func(c *KeyConfig) { c.Algorithms = []string{"ES256"} }, "does not go with an RSA key of 2048 bits"},
		{"wrong curve", func(c *KeyConfig) { c.PublicKey, c.Algorithms = &ecKey().PublicKey, []string{"ES384"} }, "an EC key on P-256"},
		{"default algorithm, EC key", func(c *KeyConfig) { c.PublicKey = &ecKey().PublicKey }, "RS256 does not go with"},
		{"no audience", func(c *KeyConfig) { c.Audiences = nil }, "no audience"},
		{"empty audience", func(c *KeyConfig) { c.Audiences = []string{""} }, "audience is empty"},
		{"negative leeway", func(c *KeyConfig) { c.Leeway = -1 }, "leeway"},
		{"eternal leeway", func(c *KeyConfig) { c.Leeway = time.Hour }, "leeway"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig()
			tt.change(&c)
			v, err := NewKeyVerifier(c)
			if err == nil || v != nil {
				t.Fatal("accepted")
			}
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v: %v, want %q in it", fault.KindOf(err), err, tt.want)
			}
		})
	}
}

func TestAlgorithmHints(t *testing.T) {
	for name, want := range map[string]string{
		"HS256": "Shared secrets", "hs512": "Shared secrets", "None": "Unsigned", "rs256": "Did you mean RS256?", "X": "Use one of",
	} {
		var e *fault.Error
		if !errors.As(checkAlgorithm(name), &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%s: hint %q, want %q in it", name, e.Hint, want)
		}
	}
}

// A verifier must neither panic nor accept what nobody signed.
func FuzzVerifier(f *testing.F) {
	v := testVerifier(f)
	good := token{}.sign(f)
	for _, seed := range []string{"", "..", good, good[:len(good)-1], cutLast(good), b64(`{"alg":"none"}`) + "." + b64(`{}`) + "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		p, err := v(context.Background(), token)
		if err == nil && token != good {
			t.Errorf("accepted %q as %+v", token, p)
		}
		if err != nil && fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("%v for %q", err, token)
		}
	})
}
