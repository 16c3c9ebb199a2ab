package auth

import (
	"errors"
	"strings"

	"cellblock/internal/fault"
)

// scopeError knows which scopes are missing.
type scopeError struct {
	error  // a *fault.Error
	scopes []string
}

// Unwrap returns the error with its kind and hint.
func (e *scopeError) Unwrap() error { return e.error }

// NeedsScope returns the error for a caller whose token lacks scopes, all that what he wants to do needs and he does not
// have. Its words are the same in whatever form he is told. It is Forbidden.
func NeedsScope(what string, scopes ...string) error {
	list, word := `"`+strings.Join(scopes, `" and "`)+`"`, "scope"
	if len(scopes) > 1 {
		word = "scopes"
	}
	err := fault.New(fault.Forbidden, "%s needs the %s %s, which this token does not have", what, word, list).
		WithHint("Use a token with the %s %s.", word, list)
	return &scopeError{error: err, scopes: scopes}
}

// ScopesIn returns the scopes that an error of NeedsScope names, nil for another.
func ScopesIn(err error) []string {
	if missing, ok := errors.AsType[*scopeError](err); ok {
		return missing.scopes
	}
	return nil
}

// Prefixed returns scopes as clients must ask for them where an issuer wants a name before each.
func Prefixed(prefix string, scopes []string) []string {
	named := make([]string, len(scopes))
	for n, scope := range scopes {
		named[n] = prefix + scope
	}
	return named
}
