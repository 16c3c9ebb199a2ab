package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/auth"
	"cellblock/internal/fault"
)

// What a server says when it refuses reaches the person who typed the command, with the exit status of its kind.
func TestRefusalsAreReadable(t *testing.T) {
	dev, err := auth.EnsureDev(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	poor, err := dev.Mint(auth.TokenSpec{Scopes: []string{"sessions:read"}})
	if err != nil {
		t.Fatal(err)
	}
	behind := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth.InsufficientScope(w, r, auth.BearerOptions{}, auth.NeedsScope("execute_python", "python:execute"))
	})
	server := httptest.NewServer(auth.RequireBearer(dev.Verifier(), auth.BearerOptions{})(behind))
	defer server.Close()
	for token, want := range map[string][]string{
		"nonsense": {"the token is not a JSON Web Token", "cellblock token"},
		poor:       {"which this token does not have", "python:execute"},
	} {
		_, err := dialMCP(t.Context(), server.URL, token, func(mcp.JSONRPCNotification) {})
		for _, part := range want {
			if err == nil || !strings.Contains(fault.Text(err), part) {
				t.Errorf("%q is missing in %v", part, err)
			}
		}
		if fault.ExitCode(err) != 77 {
			t.Errorf("exit status %d of %v", fault.ExitCode(err), err)
		}
	}
}

// The hint of a refusal names a command whose token is let in.
func TestRefusalsNameTheTokenToMake(t *testing.T) {
	for scope, want := range map[string]string{
		auth.ScopeAdmin:  "`cellblock token --scopes sessions:admin`",
		"python:execute": "`cellblock token`",
	} {
		answer := httptest.NewRecorder()
		auth.InsufficientScope(answer, httptest.NewRequest("POST", "/mcp", nil), auth.BearerOptions{}, auth.NeedsScope("a tool", scope))
		if said := fault.Text(refusalIn(answer.Body.Bytes())); !strings.Contains(said, want) {
			t.Errorf("%s is missing in %s", want, said)
		}
	}
}
