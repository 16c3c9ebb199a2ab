package auth

import (
	"os"
	"strings"
	"testing"
)

// Whoever sets up an identity provider is told of all scopes that are not an operator's, and the commands there make them.
func TestScopesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/identity-providers.md")
	if err != nil {
		t.Fatal(err)
	}
	table, keycloak, _ := strings.Cut(string(text), "## Keycloak")
	_, loop, _ := strings.Cut(keycloak, "for scope in ")
	loop, _, _ = strings.Cut(loop, "; do")
	for _, scope := range fixedScopes() {
		if !strings.Contains(table, "`"+scope+"`") {
			t.Errorf("the table lacks %s", scope)
		}
		if scope != ScopeAdmin && !strings.Contains(" "+loop+" ", " "+scope+" ") {
			t.Errorf("the commands for Keycloak make no %s", scope)
		}
	}
}
