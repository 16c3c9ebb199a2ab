// Package sdk drives the real program with the MCP clients of others: the TypeScript SDKs of both eras and the Inspector.
package sdk

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) { rig.Main(m) }

// limit is what one script may take.
const limit = 90 * time.Second

// target tells a script where to connect, and with which SDK; clients.mjs reads it.
type target struct {
	SDK     string            `json:"sdk"`
	URL     string            `json:"url,omitempty"`
	Token   string            `json:"token,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// eras are the SDKs: for the handshake revisions, and for 2026-07-28.
var eras = []string{"sdk1", "sdk2"}

func needLocal(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("bwrap")
	kernelstest.Need(t, err == nil, "bubblewrap")
	kernelstest.NeedPython(t)
}

func runScript(t *testing.T, node *rig.Node, dir, script string, to target) {
	t.Helper()
	raw, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := node.Command(ctx, filepath.Join(dir, script), string(raw)).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}

// Each script says in its first lines what it shows.
func TestOverHTTP(t *testing.T) {
	needLocal(t)
	node := rig.NeedNode(t)
	dir := node.Scripts(t, ".")
	s := rig.Serve(t, "--provisioner", "local")
	token := s.Token(t)
	for _, script := range []string{"progress.mjs", "cancel.mjs", "drop.mjs", "neighbours.mjs", "input.mjs"} {
		for _, sdk := range eras {
			t.Run(script+"/"+sdk, func(t *testing.T) {
				t.Parallel()
				runScript(t, node, dir, script, target{SDK: sdk, URL: s.URL, Token: token})
			})
		}
	}
}

func TestOverStdio(t *testing.T) {
	needLocal(t)
	node := rig.NeedNode(t)
	dir := node.Scripts(t, ".")
	for _, script := range []string{"progress.mjs", "cancel.mjs", "input.mjs"} {
		for _, sdk := range eras {
			t.Run(script+"/"+sdk, func(t *testing.T) {
				t.Parallel()
				runScript(t, node, dir, script, target{SDK: sdk, Command: rig.Cellblock(), Args: []string{
					"stdio", "--provisioner", "local", "--data-dir", t.TempDir(), "--run-dir", kernelstest.ShortDir(t)}})
			})
		}
	}
}
