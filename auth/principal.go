// Package auth says who calls and what they may do.
//
// A Verifier turns a bearer token into a Principal; RequireBearer puts that in front of an HTTP handler and hands the
// Principal on in the request's context. Tokens are JSON Web Tokens (RFC 7519) signed by a key that the operator named
// (KeyConfig), or, when nothing is configured, by a key of this installation's own that never leaves its data folder
// (Dev). Only asymmetric signatures exist here, so that a published public key can never pass for a shared secret.
package auth

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Principal is who a verified token speaks for.
type Principal struct {
	// Issuer is the token's iss. It may be empty only where the operator pinned no issuer.
	Issuer string
	// Subject is the token's sub, never empty.
	Subject string
	// ClientID is the OAuth client that the token was given to (client_id or azp), or empty.
	ClientID string
	// Scopes are what the token may do.
	Scopes []string
	// Expires is the token's exp, without leeway.
	Expires time.Time
}

// Has tells whether the token carries scope. Names are compared exactly; there is no wildcard.
func (p Principal) Has(scope string) bool { return slices.Contains(p.Scopes, scope) }

// Owner returns one string for issuer and subject, the same for every token of the same caller and different for any two
// callers: the issuer's length comes first, so that no choice of names can move the border between the two.
func (p Principal) Owner() string {
	return strconv.Itoa(len(p.Issuer)) + ":" + p.Issuer + p.Subject
}

type contextKey struct{}

// NewContext returns a context that carries p.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the Principal that NewContext put into ctx, and false if there is none.
func FromContext(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(contextKey{}).(Principal)
	return p, ok
}

// Verifier checks a token and says whom it speaks for. Its error is a *fault.Error: Unauthenticated for a token that does
// not hold, Unavailable when whether it holds cannot be found out now. The error's text never contains the token. It may
// be called concurrently.
type Verifier func(ctx context.Context, token string) (Principal, error)
