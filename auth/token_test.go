package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"
)

// TestMain doubles as the second process of TestEnsureDevProcesses.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUTH_TEST_ENSURE_DEV"); dir != "" {
		d, err := EnsureDev(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(d.key.N.Text(16))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// noon is when the tests take place.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

const (
	testIssuer   = "https://issuer.example"
	testAudience = "https://cells.example/mcp"
)

var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	otherKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	edKey    = sync.OnceValue(func() ed25519.PrivateKey {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return must(private, err)
	})
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func publicPEM(key any) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(key))})
}

func testRules() Rules {
	return Rules{Issuer: testIssuer, Audiences: []string{"other", testAudience}, Now: atNoon}
}

// testConfig verifies what sign makes.
func testConfig() KeyConfig {
	return KeyConfig{
		PublicKey: &rsaKey().PublicKey, Rules: testRules(),
	}
}

func testVerifier(t testing.TB) Verifier {
	t.Helper()
	v, err := NewKeyVerifier(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// goodClaims are those of a token that holds at noon; a nil value in changes removes one.
func goodClaims(changes jwt.MapClaims) jwt.MapClaims {
	claims := jwt.MapClaims{
		"iss": testIssuer, "sub": "ada", "aud": testAudience, "scope": "python:execute sessions:read",
		"iat": noon.Unix(), "nbf": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
	}
	for name, value := range changes {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// token is what a test signs.
type token struct {
	method jwt.SigningMethod // nil: RS256
	key    any               // nil: rsaKey
	header map[string]any    // added
	claims jwt.MapClaims     // changes to goodClaims
}

func (tk token) sign(t testing.TB) string {
	t.Helper()
	if tk.method == nil {
		tk.method = jwt.SigningMethodRS256
	}
	if tk.key == nil {
		tk.key = rsaKey()
	}
	j := jwt.NewWithClaims(tk.method, goodClaims(tk.claims))
	for name, value := range tk.header {
		j.Header[name] = value
	}
	s, err := j.SignedString(tk.key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newRSAKey() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) }

// signRaw signs claims as they are written.
func signRaw(t testing.TB, claims string) string {
	t.Helper()
	unsigned := b64(`{"alg":"RS256"}`) + "." + b64(claims)
	signature, err := jwt.SigningMethodRS256.Sign(unsigned, rsaKey())
	if err != nil {
		t.Fatal(err)
	}
	return unsigned + "." + base64.RawURLEncoding.EncodeToString(signature)
}
