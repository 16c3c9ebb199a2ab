package auth

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// maxName bounds iss and sub, which name folders' owners and stand in rows and logs.
const maxName = 1024

// principalOf reads whom verified claims speak for. Its error is Unauthenticated.
func principalOf(claims jwt.MapClaims, r Rules) (Principal, error) {
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
	var err error
	if p.Scopes, err = scopesOf(claims, r.ScopeClaims); err != nil {
		return Principal{}, err
	}
	p.Scopes = unprefixed(r.ScopePrefix, p.Scopes)
	if at, err := claims.GetExpirationTime(); err == nil && at != nil {
		p.Expires = at.Time
	}
	return p, nil
}

func unprefixed(prefix string, scopes []string) []string {
	for n, scope := range scopes {
		scopes[n] = strings.TrimPrefix(scope, prefix)
	}
	return slices.DeleteFunc(scopes, func(s string) bool { return s == "" })
}

// isName tells whether s can name somebody. The replacement character is refused because decoding puts it in place of
// every broken one: two different subjects would become equal.
func isName(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || unicode.IsControl(r)
	})
}

// standardScopes are where scopes stand by RFC 8693, section 4.2, and where other issuers put them; the first counts.
var standardScopes = []ClaimPath{{"scope"}, {"scp"}}

// scopesOf reads what a token may do from all of the claims, or where none are named from the first standard one. A claim of
// another type is an error rather than no scope, so that somebody notices.
func scopesOf(claims jwt.MapClaims, paths []ClaimPath) ([]string, error) {
	standard := len(paths) == 0
	if standard {
		paths = standardScopes
	}
	var scopes []string
	for _, path := range paths {
		value := path.in(claims)
		if value == nil {
			continue
		}
		found, ok := scopesIn(value)
		if !ok {
			return nil, refused("the token's %s is neither text nor a list of texts", path)
		}
		if scopes = append(scopes, found...); standard {
			break
		}
	}
	return scopes, nil
}

// scopesIn reads a claim: a text with spaces between, or a list of such.
func scopesIn(value any) (scopes []string, ok bool) {
	texts, isList := value.([]any)
	if !isList {
		texts = []any{value}
	}
	for _, value := range texts {
		text, isText := value.(string)
		if !isText {
			return nil, false
		}
		for scope := range strings.SplitSeq(text, " ") {
			if isScope(scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes, true
}

// isScope tells whether s can be a scope (RFC 6749, section 3.3). What cannot, is none: other spaces separate nothing, and
// letters that look alike are others.
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' || r == '"' || r == '\\' })
}

// text returns a claim that is a string, or "".
func text(claims jwt.MapClaims, name string) string {
	s, _ := claims[name].(string)
	return s
}
