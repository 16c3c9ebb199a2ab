package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

// limit is what one script may take.
const limit = 90 * time.Second

// target tells flow.mjs who asks, and whom.
type target struct {
	SDK      string   `json:"sdk"`
	URL      string   `json:"url"`
	ClientID string   `json:"client"`
	Username string   `json:"username"`
	Password string   `json:"password"`
	Tools    []string `json:"tools"`
	Runs     bool     `json:"runs"`
}

var scopes = []string{"files:read", "files:write", "python:execute", "sessions:manage", "sessions:read"}

func needLocal(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("bwrap")
	kernelstest.Need(t, err == nil, "bubblewrap")
	kernelstest.NeedPython(t)
}

// A client that knows nothing but the server's address gets a token and runs code, and one that may ask for less is shown,
// and can do, no more than that.
func TestClientsOfOthersSignIn(t *testing.T) {
	needLocal(t)
	node := rig.NeedNode(t)
	dir := node.Scripts(t, ".")
	p := startProvider(t, map[string][]string{"notebook": scopes, "reader": {"sessions:read"}})
	i := rig.Install(t, "--provisioner", "local", "--pool-size", "0")
	i.Env = []string{"MCP_ISSUER=" + p.issuer}
	s := i.Serve(t)
	for _, tt := range []struct {
		client string
		tools  []string
		runs   bool
	}{
		{"notebook", []string{"execute_python", "write_file", "close_session"}, true},
		{"reader", []string{"get_execution", "health", "inspect_variables", "list_executions", "list_sessions"}, false},
	} {
		for _, sdk := range []string{"sdk1", "sdk2"} {
			t.Run(tt.client+"/"+sdk, func(t *testing.T) {
				raw, err := json.Marshal(target{sdk, s.URL, tt.client, username, password, tt.tools, tt.runs})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				out, err := node.Command(ctx, filepath.Join(dir, "flow.mjs"), string(raw)).CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s\n%s", err, out, s.Log())
				}
			})
		}
	}
}

// The metadata say whom to ask, what for, and for whom: the address that a token's audience must be.
func TestMetadata(t *testing.T) {
	p := startProvider(t, nil)
	i := rig.Install(t, "--provisioner", "local", "--pool-size", "0", "--public-url", "https://cells.example.com/")
	i.Env = []string{"MCP_ISSUER=" + p.issuer, "MCP_SCOPE_PREFIX=api://cells/"}
	s := i.Serve(t, "--log-level", "debug")
	base := strings.TrimSuffix(address(t, s), "/mcp")
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		var metadata struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		_, body := get(t, base+path, nil)
		if err := json.Unmarshal([]byte(body), &metadata); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, body)
		}
		if metadata.Resource != "https://cells.example.com/mcp" || !slices.Equal(metadata.Servers, []string{p.issuer}) ||
			!slices.Contains(metadata.Scopes, "api://cells/python:execute") || !slices.Equal(metadata.Methods, []string{"header"}) {
			t.Errorf("%s: %s", path, body)
		}
	}
	resp, _ := get(t, base+"/mcp", nil)
	challenge := resp.Header.Get("WWW-Authenticate")
	for _, want := range []string{`resource_metadata="https://cells.example.com/.well-known/oauth-protected-resource/mcp"`,
		`scope="api://cells/files:read api://cells/files:write api://cells/python:execute`} {
		if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(challenge, want) {
			t.Errorf("status %d, %s", resp.StatusCode, challenge)
		}
	}
}

// address is where a server really listens, whatever its public URL.
func address(t *testing.T, s *rig.Server) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.DataDir, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ URL string }
	if err := json.Unmarshal(raw, &file); err != nil || file.URL == "" {
		t.Fatalf("%s: %v", raw, err)
	}
	return file.URL
}

func get(t *testing.T, url string, header http.Header) (*http.Response, string) {
	t.Helper()
	return rig.Send(t, http.MethodGet, url, "", header)
}
