package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/kernels/kernelstest"
)

// What an interpreter says of itself without importing anything is what Python's own ways to ask say.
func TestInspectPython(t *testing.T) {
	p, err := findPython(t.Context(), "")
	kernelstest.Need(t, err == nil, "a Python with ipykernel")
	out, err := exec.Command(p.Path, "-c", `
import importlib.metadata, importlib.util, platform, sys
print(sys.prefix, sys.base_prefix, platform.python_version(), importlib.metadata.version("ipykernel"),
    *[n for n in ("numpy", "pandas", "matplotlib", "sklearn") if importlib.util.find_spec(n) is None], sep="\n")`).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(string(out))
	if got := strings.Join(append([]string{p.Prefix, p.BasePrefix, p.Version, p.Kernel}, p.Missing...), "\n"); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

// An interpreter that is none, or has no ipykernel, is not taken.
func TestInspectPythonWithout(t *testing.T) {
	for name, script := range map[string]string{
		"fails": "exit 1", "says nothing": "true", "has none": `printf '/usr\0/usr\03.11\0'`, "says something else": "echo hello",
	} {
		path := filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if p, ok := inspectPython(t.Context(), path); ok {
			t.Errorf("%s: taken as %+v", name, p)
		}
	}
}
