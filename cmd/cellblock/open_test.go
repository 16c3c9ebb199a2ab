package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/auth"
	"cellblock/internal/fault"
)

// A token that the server does not take makes no link, and is refused as by any other command; with a server that is not there yet
// the link is made.
func TestOpenAsksAboutTheToken(t *testing.T) {
	dev, err := auth.EnsureDev(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	good, err := dev.Mint(auth.TokenSpec{})
	if err != nil {
		t.Fatal(err)
	}
	const initialized = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"cellblock","version":"1"}}}`
	behind := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(initialized))
	})
	server := httptest.NewServer(auth.RequireBearer(dev.Verifier(), auth.BearerOptions{})(behind))
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "token")
	open := func(command, token string) (string, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		return runCommand(t, dir, append(strings.Fields(command), "--url", server.URL, "--token-file", file)...)
	}
	if out, err := open("open", good); err != nil || !strings.Contains(out, server.URL+"/signin?code=") {
		t.Errorf("%v\n%s", err, out)
	}
	_, want := open("sessions ls", "stale")
	if out, err := open("open", "stale"); err == nil || fault.Text(err) != fault.Text(want) || fault.ExitCode(err) != 77 || strings.Contains(out, "signin") {
		t.Errorf("%v, not %v\n%s", err, want, out)
	}
	server.Close()
	if out, err := open("open", "stale"); err != nil || !strings.Contains(out, "/signin?code=") {
		t.Errorf("%v\n%s", err, out)
	}
}
