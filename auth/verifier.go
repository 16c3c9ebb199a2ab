package auth

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"mime"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

// MaxToken is the longest token that is looked at, in bytes.
const MaxToken = 16 << 10

// KeyConfig is what a Verifier with one static key checks tokens against.
type KeyConfig struct {
	// PublicKey is an *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey (see LoadPublicKey). Every algorithm of the
	// rules must go with it.
	PublicKey crypto.PublicKey
	Rules
}

// NewKeyVerifier returns a verifier for tokens signed with one key. Its error is Invalid: a configuration that could
// never verify anything, or that would verify too much.
func NewKeyVerifier(c KeyConfig) (Verifier, error) {
	if err := checkKey(c.PublicKey); err != nil {
		return nil, err
	}
	check, err := newChecker(c.Rules)
	if err != nil {
		return nil, err
	}
	for _, a := range check.Algorithms {
		if err := checkFit(a, c.PublicKey); err != nil {
			return nil, err
		}
	}
	keys := &keyring{find: func(*jwt.Token) (any, error) { return c.PublicKey, nil }}
	return func(_ context.Context, token string) (Principal, error) { return check.verify(token, keys) }, nil
}

// keyring is the keys that tokens are verified with at one time, and whose tokens were found to hold by them. Other keys
// are another keyring, so that what is remembered ends with the key that it rests on.
type keyring struct {
	// find returns the key, or the jwt.VerificationKeySet, that may have signed a token with this header.
	find  jwt.Keyfunc
	known known
}

// checker holds tokens against rules.
type checker struct {
	Rules
	parser *jwt.Parser
}

func newChecker(r Rules) (*checker, error) {
	r = r.withDefaults()
	if err := r.check(); err != nil {
		return nil, err
	}
	return &checker{Rules: r, parser: jwt.NewParser(r.options()...)}, nil
}

// verify tells whom a token speaks for. Claims are kept as a map because its names are matched exactly; a struct would also
// take a claim called "Sub", which some issuers let users choose. A token that held once holds until it expires: nbf and iat
// have passed, and what it says does not change.
func (c *checker) verify(token string, keys *keyring) (Principal, error) {
	if len(token) > MaxToken {
		return Principal{}, refused("the token has %d bytes, at most %d are accepted", len(token), MaxToken)
	}
	d := sha256.Sum256([]byte(token))
	if p, ok := keys.known.find(d, c.Now(), c.Leeway); ok {
		return p, nil
	}
	claims := jwt.MapClaims{}
	// The key is looked for before the signature is checked, with the header parsed: the place to refuse headers.
	parsed, err := c.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if err := checkHeader(t.Header); err != nil {
			return nil, err
		}
		return keys.find(t)
	})
	if err != nil {
		return Principal{}, c.explain(err, parsed, claims)
	}
	if err := checkUnique(token); err != nil {
		return Principal{}, err
	}
	p, err := principalOf(claims, c.Rules)
	if err == nil {
		keys.known.add(d, p, c.Now(), c.Leeway)
	}
	return p, err
}

// checkHeader refuses what the header demands and we do not do. Keys and addresses of keys in it (jwk, jku, x5u, x5c) are
// not read: which keys count is not for a token to say. Its kid only chooses among them.
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
func (c *checker) explain(err error, token *jwt.Token, claims jwt.MapClaims) error {
	if own, ok := errors.AsType[*fault.Error](err); ok {
		return own
	}
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return refused("the token is not a JSON Web Token").
			WithHint("Send the token as it was issued, three parts with dots between them.")
	case token != nil && token.Method != nil && !slices.Contains(c.Algorithms, token.Method.Alg()):
		return refused("the token is not signed with %s", strings.Join(c.Algorithms, " or ")).
			WithHint("Have its issuer sign with that, or this server's operator set MCP_ALGORITHM to what the issuer signs with.")
	case errors.Is(err, jwt.ErrTokenUnverifiable), errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return refused("the token's signature does not hold").
			WithHint("Get a token from the issuer that this server trusts, signed with %s.", strings.Join(c.Algorithms, " or "))
	case errors.Is(err, jwt.ErrTokenInvalidClaims):
		return c.explainClaims(err, claims)
	}
	return refused("the token does not verify")
}

func (c *checker) explainClaims(err error, claims jwt.MapClaims) error {
	switch {
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return refused("the token is from another issuer (%.200q)", text(claims, "iss")).
			WithHint("Get a token from %s.", c.Issuer)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		audience, _ := claims.GetAudience()
		return refused("the token is for another audience (%.200q)", strings.Join(audience, " ")).
			WithHint("Ask for a token with the audience %s.", strings.Join(c.Audiences, " or "))
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return refused("the token lacks %s", c.missing(claims)).
			WithHint("Ask for a token with exp and aud%s.", issuerToo(c.Issuer))
	case errors.Is(err, jwt.ErrTokenExpired):
		return refused("the token has expired").WithHint("Get a new token.")
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return refused("the token is not valid yet (nbf or iat lies ahead)").
			WithHint("Wait, or set the clocks of issuer and server right.")
	}
	return refused("a claim of the token is of the wrong type")
}

// missing names the required claims that are not there.
func (c *checker) missing(claims jwt.MapClaims) string {
	var names []string
	if at, _ := claims.GetExpirationTime(); at == nil {
		names = append(names, "exp")
	}
	if audience, _ := claims.GetAudience(); strings.Join(audience, "") == "" {
		names = append(names, "aud")
	}
	if c.Issuer != "" && text(claims, "iss") == "" {
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
