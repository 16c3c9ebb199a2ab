package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What only tests need is fetched for tests alone, and not without a word.
func TestSetupFetchesForTestsAlone(t *testing.T) {
	root, path := t.TempDir(), t.TempDir()
	script, err := os.ReadFile("../../scripts/setup.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "scripts"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(root, "scripts", "setup.sh"): string(script),
		filepath.Join(root, "scripts", "node.sh"):  "#!/bin/sh\necho node.sh \"$@\"\n",
		filepath.Join(root, "go.mod"):              "go 1.0\n",
		filepath.Join(path, "go"):                  "#!/bin/sh\necho go1.99\n",
		filepath.Join(path, "npm"):                 "#!/bin/sh\n",
		filepath.Join(path, "bwrap"):               "#!/bin/sh\n",
		filepath.Join(path, "python"):              "#!/bin/sh\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{
		"":        "",
		"--check": "",
		"--tests": "setup: fetching the Node kernel's packages from npm, for its tests\nnode.sh --packages\n",
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "setup.sh"), strings.Fields(arg)...)
		cmd.Env = []string{"PATH=" + path + ":" + os.Getenv("PATH"), "CELLBLOCK_PYTHON=" + filepath.Join(path, "python")}
		said, err := cmd.CombinedOutput()
		if fetched, _, done := strings.Cut(string(said), "setup: nothing to do: "); err != nil || !done || fetched != want {
			t.Errorf("%q: %v\n%s", arg, err, said)
		}
	}
}
