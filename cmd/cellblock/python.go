package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"cellblock/internal/fault"
)

// hostPython is an interpreter of this host that can run a Python kernel.
type hostPython struct {
	// Path is the interpreter.
	Path string
	// Prefix and BasePrefix are what it must be able to read, when that is outside /usr: a virtual environment and what
	// it was made from.
	Prefix     string
	BasePrefix string
	// Version is Python's, Kernel is ipykernel's.
	Version string
	Kernel  string
	// Missing are libraries of data science that it lacks.
	Missing []string
}

// describePython prints the fields of a hostPython in their order, with zero bytes between them. It imports nothing that the interpreter
// has not got already: importlib.metadata alone takes twice as long as all the rest of a server's start.
const describePython = `
import os, sys
def in_folders(name):
    for folder in sys.path:
        try: entries = os.listdir(folder or ".")
        except OSError: continue
        for entry in entries:
            if entry.startswith(name + "-") and entry.endswith(".dist-info"): return entry[len(name) + 1:-len(".dist-info")]
def installed(name):
    import importlib.metadata as m
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
def absent(name): return not any(finder.find_spec(name, None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
print(sys.prefix, sys.base_prefix, sys.version.split()[0], in_folders("ipykernel") or installed("ipykernel"),
    *filter(absent, ("numpy", "pandas", "matplotlib", "sklearn")), sep="\0", end="")`

// findPython returns the first interpreter that has ipykernel: the configured one, or else the virtual environment that
// scripts/setup.sh makes, the system's, the first on PATH.
func findPython(ctx context.Context, configured string) (hostPython, error) {
	candidates := []string{filepath.Join(".cache", "venv", "bin", "python"), "/usr/bin/python3", "python3"}
	if configured != "" {
		candidates = []string{configured}
	}
	for _, name := range candidates {
		if p, ok := inspectPython(ctx, name); ok {
			return p, nil
		}
	}
	return hostPython{}, fault.New(fault.Unavailable, "no Python with ipykernel: tried %s", strings.Join(candidates, ", ")).
		WithHint("Debian, Ubuntu: apt-get install python3-ipykernel python3-matplotlib python3-pandas; elsewhere: pip install ipykernel, and name that interpreter with --python.")
}

func inspectPython(ctx context.Context, name string) (hostPython, bool) {
	path, err := exec.LookPath(name)
	if err != nil {
		return hostPython{}, false
	}
	if path, err = filepath.Abs(path); err != nil {
		return hostPython{}, false
	}
	out, err := exec.CommandContext(ctx, path, "-c", describePython).Output()
	if err != nil {
		return hostPython{}, false
	}
	fields := strings.Split(string(out), "\x00")
	if len(fields) < 4 || fields[3] == "" {
		return hostPython{}, false
	}
	return hostPython{Path: path, Prefix: fields[0], BasePrefix: fields[1], Version: fields[2], Kernel: fields[3], Missing: fields[4:]}, true
}

// readPaths are the folders outside the system's own that the interpreter needs.
func (p hostPython) readPaths() []string {
	var paths []string
	for _, dir := range []string{p.Prefix, p.BasePrefix} {
		if dir != "" && dir != "/usr" && !strings.HasPrefix(dir, "/usr/") && (len(paths) == 0 || paths[0] != dir) {
			paths = append(paths, dir)
		}
	}
	return paths
}
