package auth

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"mime"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

const (
	// MaxToken is the longest token that is looked at, in bytes.
	MaxToken = 16 << 10
	// DefaultLeeway is how far the issuer's clock and ours may be apart.
	DefaultLeeway = 60 * time.Second
	// maxLeeway keeps a slip in a unit from making tokens eternal.
	maxLeeway = 10 * time.Minute
)

// KeyConfig is what a Verifier with one static key checks tokens against.
type KeyConfig struct {
	// PublicKey is an *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey (see LoadPublicKey).
	PublicKey crypto.PublicKey
	// Issuer is the iss that tokens must carry. Empty: any or none, because one key belongs to one issuer anyway.
	Issuer string
	// Audiences are who we are; a token must name at least one of them in aud (RFC 8707). Required.
	Audiences []string
	// Algorithms are what tokens may be signed with; each must go with the key. Empty: DefaultAlgorithm.
	Algorithms []string
	// Leeway is allowed on exp, nbf and iat. Zero: DefaultLeeway.
	Leeway time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// NewKeyVerifier returns a verifier for tokens signed with one key. Its error is Invalid: a configuration that could
// never verify anything, or that would verify too much.
func NewKeyVerifier(c KeyConfig) (Verifier, error) {
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{DefaultAlgorithm}
	}
	if c.Leeway == 0 {
		c.Leeway = DefaultLeeway
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	v := &keyVerifier{KeyConfig: c, parser: jwt.NewParser(c.options()...)}
	return v.verify, nil
}

func (c KeyConfig) check() error {
	if err := checkKey(c.PublicKey); err != nil {
		return err
	}
	for _, a := range c.Algorithms {
		if err := checkAlgorithm(a); err != nil {
			return err
		}
		if err := checkFit(a, c.PublicKey); err != nil {
			return err
		}
	}
	if len(c.Audiences) == 0 {
		return fault.New(fault.Invalid, "no audience to accept tokens for").
			WithHint("Set MCP_AUDIENCE to the name that tokens for this server carry in aud.")
	}
	for _, a := range c.Audiences {
		if a == "" {
			return fault.New(fault.Invalid, "an audience is empty")
		}
	}
	if c.Leeway < 0 || c.Leeway > maxLeeway {
		return fault.New(fault.Invalid, "leeway of %s; it must be between 0 and %s", c.Leeway, maxLeeway)
	}
	return nil
}

func (c KeyConfig) options() []jwt.ParserOption {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(c.Algorithms),
		jwt.WithAudience(c.Audiences...),
		jwt.WithLeeway(c.Leeway),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(c.Now),
	}
	if c.Issuer != "" {
		options = append(options, jwt.WithIssuer(c.Issuer))
	}
	return options
}

type keyVerifier struct {
	KeyConfig
	parser *jwt.Parser
	known  known
}

// verify is the Verifier. Claims are kept as a map because its names are matched exactly; a struct would also take a
// claim called "Sub", which some issuers let users choose. A token that held once holds until it expires: nbf and iat have
// passed, and what it says does not change.
func (v *keyVerifier) verify(_ context.Context, token string) (Principal, error) {
	if len(token) > MaxToken {
		return Principal{}, refused("the token has %d bytes, at most %d are accepted", len(token), MaxToken)
	}
	d := sha256.Sum256([]byte(token))
	if p, ok := v.known.find(d, v.Now(), v.Leeway); ok {
		return p, nil
	}
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(token, claims, v.key); err != nil {
		return Principal{}, v.explain(err, claims)
	}
	p, err := principalOf(claims)
	if err == nil {
		v.known.add(d, p, v.Now(), v.Leeway)
	}
	return p, err
}

// key is called before the signature is checked, with the header parsed: the place to refuse headers.
func (v *keyVerifier) key(t *jwt.Token) (any, error) {
	if err := checkHeader(t.Header); err != nil {
		return nil, err
	}
	return v.PublicKey, nil
}

// checkHeader refuses what the header demands and we do not do. Hints at keys (kid, jku, jwk, x5u, x5c) are not read:
// the key is ours to choose.
func checkHeader(header map[string]any) error {
	if _, ok := header["crit"]; ok {
		return refused("the token's header names extensions that must be understood (crit); none are")
	}
	typ, ok := header["typ"]
	if !ok {
		return nil
	}
	name, _ := typ.(string)
	if media, _, err := mime.ParseMediaType(name); err == nil {
		switch strings.TrimPrefix(media, "application/") {
		case "jwt", "at+jwt":
			return nil
		}
	}
	return refused("the token is not an access token (typ %.40q)", name).
		WithHint("Send an access token (typ JWT or at+jwt), not an ID token's or a logout token's kind.")
}

// refused returns the error for a token that does not hold, with the hint that fits where no better one is set.
func refused(format string, args ...any) *fault.Error {
	return fault.New(fault.Unauthenticated, format, args...).
		WithHint("Get an access token for this server from its issuer.")
}

// explain puts the library's error into words of ours: nothing of the token is quoted but, once its signature held, the
// claim that is wrong.
func (v *keyVerifier) explain(err error, claims jwt.MapClaims) error {
	if own, ok := errors.AsType[*fault.Error](err); ok {
		return own
	}
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return refused("the token is not a JSON Web Token").
			WithHint("Send the token as it was issued, three parts with dots between them.")
	case errors.Is(err, jwt.ErrTokenUnverifiable), errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return refused("the token's signature does not hold").
			WithHint("Get a token from the issuer that this server trusts, signed with %s.", strings.Join(v.Algorithms, " or "))
	case errors.Is(err, jwt.ErrTokenInvalidClaims):
		return v.explainClaims(err, claims)
	}
	return refused("the token does not verify")
}

func (v *keyVerifier) explainClaims(err error, claims jwt.MapClaims) error {
	switch {
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return refused("the token is from another issuer (%.200q)", text(claims, "iss")).
			WithHint("Get a token from %s.", v.Issuer)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		audience, _ := claims.GetAudience()
		return refused("the token is for another audience (%.200q)", strings.Join(audience, " ")).
			WithHint("Ask for a token with the audience %s.", strings.Join(v.Audiences, " or "))
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return refused("the token lacks %s", v.missing(claims)).
			WithHint("Ask for a token with exp and aud%s.", issuerToo(v.Issuer))
	case errors.Is(err, jwt.ErrTokenExpired):
		return refused("the token has expired").WithHint("Get a new token.")
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return refused("the token is not valid yet (nbf or iat lies ahead)").
			WithHint("Wait, or set the clocks of issuer and server right.")
	}
	return refused("a claim of the token is of the wrong type")
}

// missing names the required claims that are not there.
func (v *keyVerifier) missing(claims jwt.MapClaims) string {
	var names []string
	if at, _ := claims.GetExpirationTime(); at == nil {
		names = append(names, "exp")
	}
	if audience, _ := claims.GetAudience(); strings.Join(audience, "") == "" {
		names = append(names, "aud")
	}
	if v.Issuer != "" && text(claims, "iss") == "" {
		names = append(names, "iss")
	}
	return strings.Join(names, " and ")
}

func issuerToo(issuer string) string {
	if issuer == "" {
		return ""
	}
	return " and iss"
}
