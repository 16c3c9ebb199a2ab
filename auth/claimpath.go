package auth

import (
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

// ClaimPath is where in a token a claim stands: the names from the outside in.
type ClaimPath []string

// maxClaimPath bounds the names of a path.
const maxClaimPath = 8

// ParseClaimPath reads a path as an operator writes it: with dots, "realm_access.roles"; a name that has a colon is one
// name with all its dots, "https://cells.example/roles"; and where a path leads through such a name, a JSON pointer
// (RFC 6901), "/resource_access/https:~1~1cells.example/roles". Its error is Invalid.
func ParseClaimPath(text string) (ClaimPath, error) {
	var path ClaimPath
	switch {
	case strings.HasPrefix(text, "/"):
		for part := range strings.SplitSeq(text[1:], "/") {
			if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
				return nil, badClaimPath(text)
			}
			path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		}
	case strings.Contains(text, ":"):
		path = ClaimPath{text}
	default:
		path = strings.Split(text, ".")
	}
	if len(path) > maxClaimPath || !isName(text) {
		return nil, badClaimPath(text)
	}
	for _, name := range path {
		if name == "" {
			return nil, badClaimPath(text)
		}
	}
	return path, nil
}

func badClaimPath(text string) error {
	return fault.New(fault.Invalid, "%.100q is no path of a claim", text).
		WithHint("Write it as permissions, realm_access.roles, https://cells.example/roles, or /resource_access/https:~1~1cells.example/roles.")
}

// String writes a path as a JSON pointer, or its only name as it is.
func (p ClaimPath) String() string {
	if len(p) == 1 {
		return p[0]
	}
	var b strings.Builder
	for _, name := range p {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// in returns the claim's value, nil where there is none. Names are matched exactly.
func (p ClaimPath) in(claims jwt.MapClaims) any {
	var at any = map[string]any(claims)
	for _, name := range p {
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[name]
	}
	return at
}
