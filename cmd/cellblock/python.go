package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"

	"cellblock/internal/fault"
)

// hostPython is an interpreter of this host that can run a Python kernel.
type hostPython struct {
	// Path is the interpreter.
	Path string `json:"-"`
	// Prefix and BasePrefix are what it must be able to read, when that is outside /usr: a virtual environment and what
	// it was made from.
	Prefix     string `json:"prefix"`
	BasePrefix string `json:"base_prefix"`
	// Version is Python's, Kernel is ipykernel's.
	Version string `json:"version"`
	Kernel  string `json:"kernel"`
	// Missing are libraries of data science that it lacks.
	Missing []string `json:"missing"`
}

const describePython = `
import importlib.metadata as m, importlib.util as u, json, platform, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
print(json.dumps({"prefix": sys.prefix, "base_prefix": sys.base_prefix, "version": platform.python_version(), "kernel": version("ipykernel"),
    "missing": [n for n in ("numpy", "pandas", "matplotlib", "sklearn") if u.find_spec(n) is None]}))`

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
	p := hostPython{Path: path}
	if json.Unmarshal(out, &p) != nil || p.Kernel == "" {
		return hostPython{}, false
	}
	return p, true
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
