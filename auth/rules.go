package auth

import (
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

const (
	// DefaultLeeway is how far the issuer's clock and ours may be apart.
	DefaultLeeway = 60 * time.Second
	// maxLeeway keeps a slip in a unit from making tokens eternal.
	maxLeeway = 10 * time.Minute
)

// Rules are what a token must say to hold, whoever's key has signed it.
type Rules struct {
	// Issuer is the iss that tokens must carry. Empty, with one static key only: any or none, because such a key belongs to
	// one issuer anyway.
	Issuer string
	// Audiences are who we are; a token must name at least one of them in aud (RFC 8707). Required.
	Audiences []string
	// Algorithms are what tokens may be signed with. Empty: DefaultAlgorithm.
	Algorithms []string
	// ScopeClaims are where a token says what it may do, all of them together. Empty: scope, or where that is missing scp.
	ScopeClaims []ClaimPath
	// ScopePrefix is taken off the scopes that carry it.
	ScopePrefix string
	// Leeway is allowed on exp, nbf and iat. Zero: DefaultLeeway.
	Leeway time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

func (r Rules) withDefaults() Rules {
	if len(r.Algorithms) == 0 {
		r.Algorithms = []string{DefaultAlgorithm}
	}
	if r.Leeway == 0 {
		r.Leeway = DefaultLeeway
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return r
}

func (r Rules) check() error {
	for _, a := range r.Algorithms {
		if err := checkAlgorithm(a); err != nil {
			return err
		}
	}
	if len(r.Audiences) == 0 {
		return fault.New(fault.Invalid, "no audience to accept tokens for").
			WithHint("Set MCP_AUDIENCE to the name that tokens for this server carry in aud.")
	}
	for _, a := range r.Audiences {
		if a == "" {
			return fault.New(fault.Invalid, "an audience is empty")
		}
	}
	if r.Leeway < 0 || r.Leeway > maxLeeway {
		return fault.New(fault.Invalid, "leeway of %s; it must be between 0 and %s", r.Leeway, maxLeeway)
	}
	return nil
}

func (r Rules) options() []jwt.ParserOption {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(r.Algorithms),
		jwt.WithAudience(r.Audiences...),
		jwt.WithLeeway(r.Leeway),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(r.Now),
	}
	if r.Issuer != "" {
		options = append(options, jwt.WithIssuer(r.Issuer))
	}
	return options
}
