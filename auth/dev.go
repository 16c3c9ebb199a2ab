package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/secretfile"
)

// What tokens of dev mode carry in iss and aud.
const (
	DevIssuer   = "cellblock-dev"
	DevAudience = "cellblock"
)

const (
	devPrivateKey = "dev_private_key.pem"
	devPublicKey  = "dev_public_key.pem"
	devToken      = "dev_token.txt"

	devKeyBits = 2048
	// devLifetime is how long a token holds unless Mint is told otherwise; devRefresh is how much of it must be left
	// when a server starts, so that the token does not end in the middle of a day's work.
	devLifetime = 30 * 24 * time.Hour
	devRefresh  = 24 * time.Hour
)

// Dev is dev mode: a key pair of this installation's own, which signs tokens for whoever can read the data folder.
type Dev struct {
	dir string
	now func() time.Time
	key *rsa.PrivateKey // that Mint signs with

	mu     sync.Mutex
	info   fs.FileInfo // of the key's file, when verify was made
	verify Verifier
}

// EnsureDev returns the dev mode of the data folder dir, making what is missing: the folder (0700), an RSA key pair and
// a token (each 0600). Any number of processes may call it at once; they all get the same key. A token that has expired
// or soon will, that another key signed, or that lacks a scope of DevScopes is replaced.
//
// Its error is Unavailable or Invalid, with a hint: a folder that cannot be written, a private key that others can read
// or that is none, a public key that was not made here. No key is ever overwritten that somebody else has put there.
func EnsureDev(dir string) (*Dev, error) { return ensureDev(dir, time.Now) }

func ensureDev(dir string, now func() time.Time) (*Dev, error) {
	if err := ensureFolder(dir); err != nil {
		return nil, err
	}
	key, err := ensureKey(filepath.Join(dir, devPrivateKey))
	if err != nil {
		return nil, err
	}
	d := &Dev{dir: dir, key: key, now: now}
	if err := d.ensurePublicKey(); err != nil {
		return nil, err
	}
	if err := d.ensureToken(); err != nil {
		return nil, err
	}
	return d, nil
}

// ensureFolder makes the data folder. One that everybody can write to would let them exchange the key.
func ensureFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.New(fault.Unavailable, "cannot make the data folder: %w", err).
			WithHint("Choose another with --data-dir.")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fault.New(fault.Unavailable, "cannot read the data folder: %w", err).WithHint("Choose another with --data-dir.")
	}
	if !secretfile.Sealed(info) {
		return fault.New(fault.Invalid, "everybody can write to the data folder %s", dir).
			WithHint("Type chmod 700 %s, or choose another with --data-dir.", dir)
	}
	return nil
}

// TokenPath is the file that holds a token with all of DevScopes.
func (d *Dev) TokenPath() string { return filepath.Join(d.dir, devToken) }

// ensureKey reads the private key, making it first if there is none.
func ensureKey(path string) (*rsa.PrivateKey, error) {
	data, err := secretfile.Ensure(path, newDevKey)
	if err != nil {
		return nil, err
	}
	return parseDevKey(path, data)
}

func newDevKey() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, devKeyBits)
	if err != nil {
		return nil, fault.New(fault.Internal, "cannot generate a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fault.New(fault.Internal, "cannot encode a key: %w", err)
	}
	return append([]byte(madeHere), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...), nil
}

func parseDevKey(path string, data []byte) (*rsa.PrivateKey, error) {
	broken := fault.New(fault.Invalid, "%s holds no RSA private key (PKCS #8, PEM)", path).
		WithHint("Remove the file; the next start makes a new key, and tokens made so far end.")
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, broken
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, broken
	}
	return key, nil
}

// ensurePublicKey writes the public half where it is missing or another's, for people who verify tokens themselves.
func (d *Dev) ensurePublicKey() error {
	der, err := x509.MarshalPKIXPublicKey(&d.key.PublicKey)
	if err != nil {
		return fault.New(fault.Internal, "cannot encode a key: %w", err)
	}
	want := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	path := filepath.Join(d.dir, devPublicKey)
	switch have, err := os.ReadFile(path); {
	case err == nil && bytes.HasSuffix(have, want):
		return nil
	case err == nil && !bytes.HasPrefix(have, []byte(madeHere)):
		return foreignKey(path)
	}
	return secretfile.Replace(path, append([]byte(madeHere), want...))
}

// Allow makes the token in the data folder one that has these scopes too: those of languages that only the server knows.
// Its error is EnsureDev's.
func (d *Dev) Allow(scopes []string) error { return d.ensureToken(scopes...) }

// ensureToken replaces the token in the data folder unless it serves as it is. Two processes may both write one; either
// token holds, whichever comes last.
func (d *Dev) ensureToken(further ...string) error {
	scopes := DevScopes()
	for _, scope := range further {
		if !slices.Contains(scopes, scope) && scope != ScopeAdmin {
			scopes = append(scopes, scope)
		}
	}
	data, err := secretfile.Read(d.TokenPath())
	switch {
	case err == nil && d.serves(strings.TrimSpace(string(data)), scopes):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	token, err := d.Mint(TokenSpec{Scopes: scopes})
	if err != nil {
		return err
	}
	return secretfile.Replace(d.TokenPath(), []byte(token+"\n"))
}

// allScopes are DevScopes and what Allow has added to the token in the data folder.
func (d *Dev) allScopes() []string {
	scopes := DevScopes()
	data, err := secretfile.Read(d.TokenPath())
	if err != nil {
		return scopes
	}
	p, err := d.verifyNow(context.Background(), strings.TrimSpace(string(data)))
	if err != nil {
		return scopes
	}
	return append(scopes, slices.DeleteFunc(slices.Clone(p.Scopes), func(scope string) bool {
		return slices.Contains(scopes, scope) || scope == ScopeAdmin
	})...)
}

// serves tells whether a token holds for a while, for all of these scopes.
func (d *Dev) serves(token string, scopes []string) bool {
	p, err := d.verifyNow(context.Background(), token)
	lacks := slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(p.Scopes, scope) })
	return err == nil && p.Expires.Sub(d.now()) > devRefresh && !lacks
}
