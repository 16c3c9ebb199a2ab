package signin

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
)

// Flow is one attempt to sign in at an identity provider: a secret that its browser keeps in a cookie. All that the attempt is
// bound by is made of it, so that nothing of attempts is kept here.
type Flow string

// NewFlow begins an attempt.
func NewFlow() Flow { return Flow(rand.Text() + rand.Text()) }

// State is what the provider sends back (RFC 6749, section 10.12).
func (f Flow) State() string { return f.made("state") }

// Nonce is what the ID token carries (OpenID Connect Core 1.0, section 3.1.2.1).
func (f Flow) Nonce() string { return f.made("nonce") }

// Verifier is the code verifier (RFC 7636, section 4.1).
func (f Flow) Verifier() string { return f.made("verifier") }

// Is tells whether a state that came back is this attempt's.
func (f Flow) Is(state string) bool {
	return secretForm.MatchString(string(f)) && hmac.Equal([]byte(f.State()), []byte(state))
}

func (f Flow) made(use string) string {
	return base64.RawURLEncoding.EncodeToString(derive(string(f), "flow "+use))
}
