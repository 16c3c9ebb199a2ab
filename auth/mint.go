package auth

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

// DevSubject is whom a token of dev mode speaks for unless it is said otherwise.
const DevSubject = "dev"

// maxLifetime bounds what Mint is asked for; a dev token cannot be taken back but with its key.
const maxLifetime = 366 * 24 * time.Hour

// TokenSpec is what a dev token is to carry.
type TokenSpec struct {
	// Subject is whom it speaks for; sessions belong to it. Empty: DevSubject.
	Subject string
	// Scopes are what it may do. Nil: DevScopes, and what Allow has added; empty but not nil: nothing.
	Scopes []string
	// Lifetime is how long it holds, in whole seconds. Zero: 30 days; at most 366 days.
	Lifetime time.Duration
}

// Mint makes a token that Verifier accepts. Its error is Invalid: a spec that breaks its rules.
func (d *Dev) Mint(spec TokenSpec) (string, error) {
	if spec.Subject == "" {
		spec.Subject = DevSubject
	}
	if spec.Scopes == nil {
		spec.Scopes = d.allScopes()
	}
	if spec.Lifetime == 0 {
		spec.Lifetime = devLifetime
	}
	if err := spec.check(); err != nil {
		return "", err
	}
	now := d.now()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss": DevIssuer, "sub": spec.Subject, "aud": DevAudience, "client_id": "cellblock",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(spec.Lifetime).Unix(),
		"jti": rand.Text(), "scope": strings.Join(spec.Scopes, " "),
	})
	token.Header["typ"] = "at+jwt" // RFC 9068
	signed, err := token.SignedString(d.key)
	if err != nil {
		return "", fault.New(fault.Internal, "cannot sign a token: %w", err)
	}
	if len(signed) > MaxToken {
		return "", fault.New(fault.Invalid, "the token would have %d bytes, at most %d are accepted", len(signed), MaxToken).
			WithHint("Name fewer scopes.")
	}
	return signed, nil
}

func (s TokenSpec) check() error {
	if !isName(s.Subject) {
		return fault.New(fault.Invalid, "the subject is too long or holds characters that names cannot have").
			WithHint("Use at most %d bytes of printable text.", maxName)
	}
	for _, scope := range s.Scopes {
		if err := checkScope(scope); err != nil {
			return err
		}
	}
	if s.Lifetime < time.Second || s.Lifetime > maxLifetime {
		return fault.New(fault.Invalid, "a lifetime of %s", s.Lifetime).WithHint("Use 1s to %s.", maxLifetime)
	}
	return nil
}
