package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

func block(name string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der})
}

// certificate signs one for rsaKey, long expired.
func certificate(t testing.TB) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: noon.Add(-time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &rsaKey().PublicKey, rsaKey())
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der)
}

func TestLoadPublicKey(t *testing.T) {
	public := &rsaKey().PublicKey
	cert := certificate(t)
	tests := []struct {
		name string
		data []byte
		want interface {
			Equal(crypto.PublicKey) bool
		}
	}{
		{"PKIX", publicPEM(public), public},
		{"PKCS #1", block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(public)), public},
		{"certificate", cert, public},
		{"chain", append(append([]byte{}, cert...), cert...), public},
		{"text around", []byte("issuer's key\n" + string(publicPEM(public)) + "\nend\n"), public},
		{"EC", publicPEM(&ecKey().PublicKey), &ecKey().PublicKey},
		{"Ed25519", publicPEM(edKey().Public()), edKey().Public().(ed25519.PublicKey)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key.pem")
			if err := os.WriteFile(path, tt.data, 0o644); err != nil {
				t.Fatal(err)
			}
			key, err := LoadPublicKey(path)
			if err != nil {
				t.Fatal(fault.Text(err))
			}
			if !tt.want.Equal(key) {
				t.Errorf("another key: %T", key)
			}
		})
	}
}

func TestParsePublicKeyRefuses(t *testing.T) {
	small := must(rsa.GenerateKey(rand.Reader, 1024))
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	public := publicPEM(&rsaKey().PublicKey)
	private := must(x509.MarshalPKCS8PrivateKey(rsaKey()))
	tests := []struct {
		name string
		data []byte
		want string // in message and hint
	}{
		{"empty", nil, "not PEM"},
		{"text", []byte("hello"), "not PEM"},
		{"JWK", []byte(` {"kty":"RSA"}`), "JSON Web Key"},
		{"SSH", []byte("ssh-rsa AAAA me"), "SSH key"},
		{"DER", must(x509.MarshalPKIXPublicKey(&rsaKey().PublicKey)), "DER"},
		{"DER, EC", must(x509.MarshalPKIXPublicKey(&ecKey().PublicKey)), "DER"},
		{"DER, Ed25519", must(x509.MarshalPKIXPublicKey(edKey().Public())), "DER"},
		{"private, PKCS #8", block("PRIVATE KEY", private), "private key"},
		{"private, PKCS #1", block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey())), "private key"},
		{"another block", block("CERTIFICATE REQUEST", private), "no public key"},
		{"broken", block("PUBLIC KEY", []byte("no")), "does not hold a key"},
		{"broken certificate", block("CERTIFICATE", []byte("no")), "does not hold a key"},
		{"private in a public block", block("PUBLIC KEY", private), "does not hold a key"},
		{"small", publicPEM(&small.PublicKey), "1024 bits is too small"},
		{"odd curve", publicPEM(&p224.PublicKey), "P-224"},
		{"two keys", append(append([]byte{}, public...), publicPEM(&ecKey().PublicKey)...), "more than one"},
		{"key and certificate", append(append([]byte{}, public...), certificate(t)...), "more than one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParsePublicKey(tt.data)
			if err == nil {
				t.Fatal("accepted")
			}
			if text := fault.Text(err); fault.KindOf(err) != fault.Invalid || !strings.Contains(text, tt.want) || fault.Hint(err) == "" {
				t.Errorf("%v: %s\nwant %q in it and a hint", fault.KindOf(err), text, tt.want)
			}
		})
	}
}

func TestLoadPublicKeyFileErrors(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.pem")
	if err := os.WriteFile(large, make([]byte, maxKeyFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "missing.pem"): "no such file",
		dir:                               "cannot read",
		large:                             "larger than any key",
	} {
		_, err := LoadPublicKey(path)
		if err == nil || !strings.Contains(err.Error(), want) || fault.Hint(err) == "" || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func FuzzParsePublicKey(f *testing.F) {
	f.Add(publicPEM(&rsaKey().PublicKey))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := ParsePublicKey(data)
		if err == nil && checkKey(key) != nil {
			t.Errorf("accepted a key that may not be used: %T", key)
		}
	})
}
