package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// What keeps a server from verifying tokens is found before it is started.
func TestDoctorLooksForTheIssuersKeys(t *testing.T) {
	const keys = `{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/keys" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, keys)
	}))
	defer issuer.Close()
	for _, tt := range []struct {
		environ map[string]string
		found   string
		err     string
	}{
		{nil, "dev mode", ""},
		{map[string]string{"MCP_ISSUER": "https://i", "MCP_JWKS_URI": issuer.URL + "/keys", "MCP_ALGORITHM": "ES256"}, "those of https://i", ""},
		{map[string]string{"MCP_ISSUER": "https://i", "MCP_JWKS_URI": issuer.URL + "/keys"}, "", "no key for RS256"},
		{map[string]string{"MCP_ISSUER": issuer.URL}, "", "publishes no metadata"},
		{map[string]string{"MCP_ISSUERS": issuer.URL}, "", "unknown environment variable"},
	} {
		t.Run(tt.found+tt.err, func(t *testing.T) {
			for name, value := range tt.environ {
				t.Setenv(name, value)
			}
			d := doctor{cfg: &Config{PublicURL: "https://cells.example.com"}, logger: slog.New(slog.DiscardHandler)}
			f := d.tokens(t.Context())
			if !strings.Contains(f.found, tt.found) || (f.err != nil) != (tt.err != "") || f.err != nil && !strings.Contains(f.err.Error(), tt.err) {
				t.Errorf("%+v", f)
			}
			if f.err != nil && fault.Hint(f.err) == "" {
				t.Error("no hint")
			}
			if strings.HasPrefix(tt.found, "those of") && !strings.Contains(strings.Join(f.notes, ""), "https://cells.example.com/mcp, signed with ES256") {
				t.Errorf("notes: %q", f.notes)
			}
		})
	}
}
