package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// inspect runs the Inspector's CLI and returns what it printed. Its catalogue of servers goes into a folder of its own.
func inspect(t *testing.T, node *rig.Node, url, token, era string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cli := node.Package("@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	all := []string{"--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json"}
	if token != "" {
		all = append(all, "--header", "Authorization: Bearer "+token)
	}
	cmd := node.Command(ctx, cli, append(all, args...)...)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

// The Inspector lists the tools without a complaint about their schemas, and runs a cell.
func TestInspector(t *testing.T) {
	needLocal(t)
	node := rig.NeedNode(t)
	s := rig.Serve(t, "--provisioner", "local")
	token := s.Token(t)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			list, said, err := inspect(t, node, s.URL, token, era, "--method", "tools/list", "--strict")
			if err != nil || strings.TrimSpace(said) != "" {
				t.Errorf("tools/list: %v\n%s%s", err, said, list)
			}
			for _, tool := range []string{`"execute_python"`, `"list_sessions"`, `"get_execution"`} {
				if !strings.Contains(list, tool) {
					t.Errorf("%s is not listed:\n%s", tool, list)
				}
			}
			called, said, err := inspect(t, node, s.URL, token, era, "--method", "tools/call", "--tool-name", "execute_python",
				"--tool-arg", "code=print(6 * 7)", "--tool-arg", "session_id=inspected-"+era)
			if err != nil || !strings.Contains(called, "42") || !json.Valid([]byte(called)) {
				t.Errorf("tools/call: %v\n%s%s", err, said, called)
			}
		})
	}
	t.Run("no token", func(t *testing.T) {
		t.Parallel()
		if out, _, err := inspect(t, node, s.URL, "", "legacy", "--method", "tools/list"); err == nil {
			t.Errorf("lists without a token:\n%s", out)
		}
	})
}
