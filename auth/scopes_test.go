package auth

import (
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestScopesOfATokenAreOnesThatExist(t *testing.T) {
	dev, err := EnsureDev(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range append(DevScopes(), "julia:execute", "c++:execute", "sessions:admin", "profile:gpu.large") {
		if _, err := dev.Mint(TokenSpec{Scopes: []string{scope}}); err != nil {
			t.Errorf("%s: %v", scope, err)
		}
	}
	for scope, hint := range map[string]string{
		"bogus": "sessions:read, sessions:manage, files:read, files:write, images:manage, sessions:admin, <language>:execute or profile:<name>",
		"":      "<language>:execute", "session:read": "Did you mean sessions:read?", "python:exec": "Did you mean python:execute?",
		"profile:": "profile:<name>", ":execute": ":execute", "a b:execute": ":execute", "*": "<language>:execute",
		"python:execute x": "python:execute", `"python:execute"`: "python:execute", "Sessions:Read": "sessions:read",
	} {
		_, err := dev.Mint(TokenSpec{Scopes: []string{"python:execute", scope}})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Hint(err), hint) {
			t.Errorf("%q: %v", scope, fault.Text(err))
		}
	}
}

func TestScopesOfMisspelledLanguagesAreNoticed(t *testing.T) {
	for scope, want := range map[string]string{
		"pyton:execute": "python:execute", "javascrpt:execute": "javascript:execute",
		"python:execute": "", "julia:execute": "", "go:execute": "", "sessions:admin": "", "profile:gpu": "",
	} {
		if got := MeantScope(scope); got != want {
			t.Errorf("%s: %q, want %q", scope, got, want)
		}
	}
}
