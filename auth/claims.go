package auth

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// maxName bounds iss and sub, which name folders' owners and stand in rows and logs.
const maxName = 1024

// principalOf reads whom verified claims speak for. Its error is Unauthenticated.
func principalOf(claims jwt.MapClaims) (Principal, error) {
	p := Principal{Issuer: text(claims, "iss"), Subject: text(claims, "sub"), ClientID: text(claims, "client_id")}
	if p.ClientID == "" {
		p.ClientID = text(claims, "azp")
	}
	if p.Subject == "" {
		return Principal{}, refused("the token names no subject (sub)").
			WithHint("Ask the issuer for tokens with sub; it says whose sessions are whose.")
	}
	if _, isText := claims["iss"].(string); claims["iss"] != nil && !isText {
		return Principal{}, refused("the token's iss is not text")
	}
	if !isName(p.Subject) || !isName(p.Issuer) {
		return Principal{}, refused("the token's iss or sub is too long, or holds characters that names cannot have")
	}
	scopes, err := scopesOf(claims)
	if err != nil {
		return Principal{}, err
	}
	p.Scopes = scopes
	if at, err := claims.GetExpirationTime(); err == nil && at != nil {
		p.Expires = at.Time
	}
	return p, nil
}

// isName tells whether s can name somebody. The replacement character is refused because decoding puts it in place of
// every broken one: two different subjects would become equal.
func isName(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || unicode.IsControl(r)
	})
}

// scopesOf reads scope, a list with spaces between (RFC 8693, section 4.2), or scp, which issuers write as such a list
// or as an array. A claim of another type is an error rather than no scope, so that somebody notices.
func scopesOf(claims jwt.MapClaims) ([]string, error) {
	for _, name := range []string{"scope", "scp"} {
		switch value := claims[name].(type) {
		case nil:
		case string:
			return strings.Fields(value), nil
		case []any:
			return scopeList(name, value)
		default:
			return nil, refused("the token's %s is neither text nor a list of texts", name)
		}
	}
	return nil, nil
}

func scopeList(name string, values []any) ([]string, error) {
	scopes := make([]string, 0, len(values))
	for _, value := range values {
		s, ok := value.(string)
		if !ok {
			return nil, refused("the token's %s is neither text nor a list of texts", name)
		}
		scopes = append(scopes, strings.Fields(s)...)
	}
	return scopes, nil
}

// text returns a claim that is a string, or "".
func text(claims jwt.MapClaims, name string) string {
	s, _ := claims[name].(string)
	return s
}
