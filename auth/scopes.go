package auth

import (
	"regexp"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
)

// ScopeAdmin allows to list and stop the sessions of all owners. A token has it only where it was asked for by name.
const ScopeAdmin = "sessions:admin"

// DevScopes returns all that there is to allow one owner: what the token in the data folder carries.
func DevScopes() []string {
	return []string{
		"python:execute", "javascript:execute", "typescript:execute", "bash:execute", "r:execute", "csharp:execute",
		"sessions:read", "sessions:manage", "files:read", "files:write", "images:manage",
		"profile:session", "profile:isolated", "profile:development",
	}
}

// openScope is a scope of a language or a profile that an operator may add.
var openScope = regexp.MustCompile(`^([a-z][a-z0-9_+-]*:execute|profile:[A-Za-z0-9._-]+)$`)

// checkScope refuses what no server of ours asks for: a token with it would be refused later, and elsewhere.
func checkScope(scope string) error {
	if scope == ScopeAdmin || slices.Contains(DevScopes(), scope) || openScope.MatchString(scope) {
		return nil
	}
	err := fault.New(fault.Invalid, "%q is no scope", scope)
	if near := nearest.Of(scope, DevScopes()); near != "" && !strings.HasSuffix(scope, ":") { // which lacks what nobody can guess
		return err.WithHint("Did you mean %s?", near)
	}
	return err.WithHint("Use %s, <language>:execute or profile:<name>.", strings.Join(fixedScopes(), ", "))
}

// MeantScope is the scope of a known language that one of an unknown language was perhaps meant to be, or "".
func MeantScope(scope string) string {
	language, isLanguage := strings.CutSuffix(scope, ":execute")
	if !isLanguage || slices.Contains(DevScopes(), scope) {
		return ""
	}
	var known []string
	for _, s := range DevScopes() {
		if name, ok := strings.CutSuffix(s, ":execute"); ok {
			known = append(known, name)
		}
	}
	if near := nearest.Of(language, known); near != "" {
		return near + ":execute"
	}
	return ""
}

// fixedScopes are those that are not of a language or a profile.
func fixedScopes() []string {
	return append(slices.DeleteFunc(DevScopes(), openScope.MatchString), ScopeAdmin)
}
