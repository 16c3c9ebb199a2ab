// Package rig builds the real program, starts it as its operators do, and finds the clients of others, for the
// end-to-end tests.
package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bin is the folder with the two binaries, while Main runs.
var bin string

// Main is a TestMain: it builds cellblock and its shim, runs the tests, and removes what it built.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main but for its end, with flags of go build; it returns the exit status.
func Run(m *testing.M, flags ...string) int {
	dir, err := os.MkdirTemp("", "cb-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := build(dir, flags); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = dir
	return m.Run()
}

// build puts both binaries into dir. Kernels of another user must reach the shim there.
func build(dir string, flags []string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", dir}, flags...) // as make build does, which has compiled the same
	cmd := exec.Command("go", append(args, "cellblock/cmd/cellblock", "cellblock/cmd/cellblock-shim")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// Cellblock returns the path of the program, and Environment what to run it with.
func Cellblock() string { return filepath.Join(bin, "cellblock") }

// Environment is the process's own, without cellblock's variables, and extra.
func Environment(extra ...string) []string {
	env := make([]string, 0, len(extra)+32)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CELLBLOCK_") && !strings.HasPrefix(kv, "MCP_") {
			env = append(env, kv)
		}
	}
	return append(env, extra...)
}

// Root returns the folder of the module.
func Root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env GOMOD: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}
