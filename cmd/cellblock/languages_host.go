package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cellblock/images"
	"cellblock/kernels"
)

// hostLanguages are the languages of this host's kernelspecs, and what they need.
type hostLanguages struct {
	python    hostPython
	pythonErr error
	found     []images.Language
	// problems are what was found and cannot be used.
	problems []error
}

// findHostLanguages looks where Jupyter looks. Python is the interpreter that findPython finds, whatever kernelspecs say.
// The error says that there is nothing, or that there is no Python where one is named.
func findHostLanguages(ctx context.Context, cfg *Config) (*hostLanguages, error) {
	h := &hostLanguages{}
	if h.python, h.pythonErr = findPython(ctx, cfg.Python); h.pythonErr == nil {
		h.found = append(h.found, images.Python(h.python.Path))
	} else if cfg.Python != "" {
		return nil, h.pythonErr
	}
	folders := images.KernelspecFolders(os.Getenv("JUPYTER_PATH"), jupyterDataDirs(h.python.Prefix)...)
	specs, problems := images.ReadKernelspecs(readKernelspecs(folders), folders)
	h.problems = problems
	for _, l := range specs {
		if l.Name != "python" {
			h.found = append(h.found, l)
		}
	}
	if len(h.found) == 0 {
		return nil, h.pythonErr
	}
	return h, nil
}

// jupyterDataDirs are the folders of Jupyter that are this user's and an interpreter's.
func jupyterDataDirs(prefix string) []string {
	var dirs []string
	switch home, err := os.UserHomeDir(); {
	case os.Getenv("JUPYTER_DATA_DIR") != "":
		dirs = append(dirs, os.Getenv("JUPYTER_DATA_DIR"))
	case os.Getenv("XDG_DATA_HOME") != "":
		dirs = append(dirs, filepath.Join(os.Getenv("XDG_DATA_HOME"), "jupyter"))
	case err == nil:
		dirs = append(dirs, filepath.Join(home, ".local", "share", "jupyter"))
	}
	if prefix != "" {
		dirs = append(dirs, filepath.Join(prefix, "share", "jupyter"))
	}
	return dirs
}

// readKernelspecs reads the kernelspecs in some folders of this host, by the paths of their files.
func readKernelspecs(folders []string) map[string][]byte {
	files := map[string][]byte{}
	for _, folder := range folders {
		paths, _ := filepath.Glob(filepath.Join(folder, "*", images.KernelspecFile)) // no pattern of ours is malformed
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > images.MaxKernelspec {
				continue
			}
			data, err := os.ReadFile(path)
			if err == nil || !errors.Is(err, fs.ErrNotExist) {
				files[path] = data
			}
		}
	}
	return files
}

// readPaths are the folders outside the system's own that kernels must be able to read.
func (h *hostLanguages) readPaths() []string {
	paths := h.python.readPaths()
	for _, l := range h.found {
		if l.Folder != "" && !strings.HasPrefix(l.Folder, "/usr/") {
			paths = append(paths, l.Folder)
		}
	}
	return paths
}

// usable are the languages whose kernels can be launched.
func (h *hostLanguages) usable(check func(kernels.Kernelspec) error) (*images.Set, error) {
	var usable []images.Language
	var first error
	for _, l := range h.found {
		if err := check(kernelspecOf(l)); err != nil {
			h.problems = append(h.problems, err)
			if first == nil {
				first = err
			}
			continue
		}
		usable = append(usable, l)
	}
	if len(usable) == 0 {
		return nil, first
	}
	return images.NewSet(usable...), nil
}

// where says in a few words what the kernels are.
func (h *hostLanguages) where() string {
	if h.pythonErr != nil {
		return ""
	}
	return ", Python " + h.python.Version
}
