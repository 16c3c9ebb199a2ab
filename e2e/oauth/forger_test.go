package oauth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// forger makes tokens, good ones and others.
type forger struct {
	t        *testing.T
	p        *provider
	audience string
}

type object = map[string]any

// claims are those of a good token, changed; a nil removes one.
func (f forger) claims(change object) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": f.p.issuer, "aud": f.audience, "sub": "ann", "scope": "sessions:read",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range change {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// by signs claims with the provider's key, with a header that is changed.
func (f forger) by(key any, method jwt.SigningMethod, header, claims object) string {
	f.t.Helper()
	token := jwt.NewWithClaims(method, f.claims(claims))
	token.Header["kid"] = "first"
	for name, value := range header {
		if token.Header[name] = value; value == nil {
			delete(token.Header, name)
		}
	}
	signed, err := token.SignedString(key)
	if err != nil {
		f.t.Fatal(err)
	}
	return signed
}

func (f forger) good(claims object) string {
	return f.by(f.p.key("first"), jwt.SigningMethodRS256, nil, claims)
}

// raw signs texts as they are.
func (f forger) raw(header, claims string) string {
	f.t.Helper()
	unsigned := b64(header) + "." + b64(claims)
	signature, err := jwt.SigningMethodRS256.Sign(unsigned, f.p.key("first"))
	if err != nil {
		f.t.Fatal(err)
	}
	return unsigned + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func (p *provider) key(id string) *rsa.PrivateKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.keys {
		if k.id == id {
			return k.key
		}
	}
	return nil
}

// forgeries are tokens that must not hold, by what is wrong with them.
func (f forger) forgeries(evil string) map[string]string {
	f.t.Helper()
	own := f.p.key("first")
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.t.Fatal(err)
	}
	rs, hs := jwt.SigningMethodRS256, jwt.SigningMethodHS256
	der, _ := x509.MarshalPKIXPublicKey(&own.PublicKey)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	n := base64.RawURLEncoding.EncodeToString(stranger.N.Bytes())
	ago, soon := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
	tokens := map[string]string{
		"HS256 with the public key":         f.by(public, hs, nil, nil),
		"HS256 with the public key, bare":   f.by(der, hs, nil, nil),
		"HS256 with the modulus":            f.by(own.N.Bytes(), hs, nil, nil),
		"HS256 with nothing":                f.by([]byte{}, hs, nil, nil),
		"another algorithm of the same key": f.by(own, jwt.SigningMethodPS256, nil, nil),
		"a stranger's key":                  f.by(stranger, rs, nil, nil),
		"a stranger's key, no kid":          f.by(stranger, rs, object{"kid": nil}, nil),
		"kid with a path":                   f.by(stranger, rs, object{"kid": "../../../../../../dev/null"}, nil),
		"kid with SQL":                      f.by(stranger, rs, object{"kid": "x' UNION SELECT 'key';--"}, nil),
		"kid of a file that is there":       f.by([]byte{}, hs, object{"kid": "/dev/null"}, nil),
		"kid an address":                    f.by(stranger, rs, object{"kid": evil}, nil),
		"kid a list":                        f.by(own, rs, object{"kid": []string{"first"}}, nil),
		"kid with a NUL":                    f.by(own, rs, object{"kid": "first\x00"}, nil),
		"jku":                               f.by(stranger, rs, object{"jku": evil}, nil),
		"jku and a kid of there":            f.by(stranger, rs, object{"jku": evil, "kid": "evil"}, nil),
		"x5u":                               f.by(stranger, rs, object{"x5u": evil, "kid": "evil"}, nil),
		"jwk":                               f.by(stranger, rs, object{"jwk": object{"kty": "RSA", "kid": "first", "e": "AQAB", "n": n}}, nil),
		"x5c":                               f.by(stranger, rs, object{"x5c": []string{base64.StdEncoding.EncodeToString(der)}}, nil),
		"crit":                              f.by(own, rs, object{"crit": []string{"exp"}}, nil),
		"an ID token for a logout":          f.by(own, rs, object{"typ": "logout+jwt"}, nil),
		"encrypted":                         b64(`{"alg":"RSA-OAEP","enc":"A256GCM"}`) + ".a.b.c.d",
		"expired":                           f.good(object{"exp": ago}),
		"no exp":                            f.good(object{"exp": nil}),
		"exp as text":                       f.good(object{"exp": fmt.Sprint(soon)}),
		"exp beyond time":                   f.raw(`{"alg":"RS256","kid":"first"}`, `{"iss":"`+f.p.issuer+`","aud":"`+f.audience+`","sub":"ann","exp":1e400}`),
		"not yet valid":                     f.good(object{"nbf": soon}),
		"issued in the future":              f.good(object{"iat": soon}),
		"another audience":                  f.good(object{"aud": "https://other.example/mcp"}),
		"audience without its path":         f.good(object{"aud": strings.TrimSuffix(f.audience, "/mcp")}),
		"audience with a slash more":        f.good(object{"aud": f.audience + "/"}),
		"audience in capitals":              f.good(object{"aud": strings.ToUpper(f.audience)}),
		"no audience":                       f.good(object{"aud": nil}),
		"no audiences":                      f.good(object{"aud": []string{}}),
		"audience an object":                f.good(object{"aud": object{f.audience: 1}}),
		"another issuer":                    f.good(object{"iss": "https://issuer.example"}),
		"issuer with a slash more":          f.good(object{"iss": f.p.issuer + "/"}),
		"no issuer":                         f.good(object{"iss": nil}),
		"issuers":                           f.good(object{"iss": []string{f.p.issuer}}),
		"no subject":                        f.good(object{"sub": nil}),
		"empty subject":                     f.good(object{"sub": ""}),
		"subject a number":                  f.good(object{"sub": 5}),
		"subject with a NUL":                f.good(object{"sub": "ann\x00"}),
		"scope an object":                   f.good(object{"scope": object{"sessions:read": true}}),
		"claims twice": f.raw(`{"alg":"RS256","kid":"first"}`,
			string(mustJSON(f.claims(nil)))[:len(mustJSON(f.claims(nil)))-1]+`,"sub":"eve"}`),
		"header twice": f.raw(`{"alg":"RS256","kid":"first","alg":"RS256"}`, string(mustJSON(f.claims(nil)))),
		"20 KB":        f.good(object{"pad": strings.Repeat("x", 20<<10)}),
		"no signature": f.good(nil)[:strings.LastIndex(f.good(nil), ".")+1],
		"half a token": f.good(nil)[:200],
	}
	for _, alg := range []any{"none", "None", "NONE", "nOnE", "none ", " none", "none\x00", "", nil, "RS256 ", "rs256", "HS256", 0, []string{"RS256"}} {
		header := mustJSON(object{"alg": alg, "typ": "JWT", "kid": "first"})
		for _, signature := range []string{"", strings.Split(f.good(nil), ".")[2]} {
			tokens[fmt.Sprintf("alg %q signed %.5q", alg, signature)] = b64(string(header)) + "." + b64(string(mustJSON(f.claims(nil)))) + "." + signature
		}
	}
	return tokens
}

func mustJSON(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}
