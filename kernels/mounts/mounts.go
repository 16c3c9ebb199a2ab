// Package mounts decides which folders of this host kernels may see.
//
// A folder must lie below one of the roots that the operator has named, with all links on its way resolved; where it appears must
// not hide what a kernel needs, nor what isolates it. Both are looked at again for every kernel, because what a path leads to may
// have changed.
package mounts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// system are folders that nothing may be mounted over, or into: the image's programs, the kernel's workspace and its memory, and
// what belongs to shim and server.
var system = []string{
	"/bin", "/boot", "/cellblock", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/root", "/run", "/sbin",
	"/sys", "/tmp", "/usr", "/var", "/workspace", "/home/cellblock",
}

// Resolve returns mounts with what their sources really are. The error is Invalid when one of them may not be. It hangs as long as a
// source's file system does.
func Resolve(roots []string, wanted []kernels.Mount) ([]kernels.Mount, error) {
	return resolveAll(wanted, func(source string) (string, error) { return resolve(roots, source) })
}

func resolveAll(wanted []kernels.Mount, folder func(source string) (string, error)) ([]kernels.Mount, error) {
	resolved := make([]kernels.Mount, 0, len(wanted))
	for _, m := range wanted {
		if err := checkTarget(m.Target); err != nil {
			return nil, err
		}
		source, err := folder(m.Source)
		if err != nil {
			return nil, err
		}
		for _, other := range resolved {
			if Within(m.Target, other.Target) || Within(other.Target, m.Target) {
				return nil, fault.New(fault.Invalid, "one of the targets %s and %s hides the other", other.Target, m.Target).
					WithHint("Choose targets that do not lie in each other.")
			}
		}
		m.Source = source
		resolved = append(resolved, m)
	}
	return resolved, nil
}

// Within tells whether a path is a folder, or lies in it. Both are clean.
func Within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// clean tells whether a path is one that can be compared: absolute, in its shortest form, and nothing that a mount's options
// could be made of.
func clean(path string) bool {
	return strings.HasPrefix(path, "/") && filepath.Clean(path) == path && !strings.ContainsAny(path, ",:\x00\n\\\"")
}

func checkTarget(target string) error {
	bad := fault.New(fault.Invalid, "nothing may be mounted at the target %q", target).
		WithHint("Use a path of its own, such as /data or /mnt/models: absolute, without \"..\", and none of the system's or of the workspace.")
	if !clean(target) || target == "/" {
		return bad
	}
	if slices.ContainsFunc(system, func(folder string) bool { return Within(target, folder) || Within(folder, target) }) {
		return bad
	}
	return nil
}

// resolve returns the folder that a source really is.
func resolve(roots []string, source string) (string, error) {
	if !clean(source) {
		return "", fault.New(fault.Invalid, "the source %q is not an absolute path in its shortest form", source).
			WithHint("Write it as /srv/data, without \"..\", commas and colons.")
	}
	if len(roots) == 0 {
		return "", fault.New(fault.Invalid, "the source %s lies below no folder that may be mounted: there are none", source).
			WithHint("Name what profiles may mount, or a folder above it: mount_roots: [%s].", source)
	}
	real, err := folder(source)
	if err != nil {
		return "", err
	}
	for _, root := range roots {
		if realRoot, err := folder(root); err == nil && Within(real, realRoot) {
			return real, nil
		}
	}
	what := source
	if real != source {
		what = source + ", which leads to " + real + ","
	}
	return "", fault.New(fault.Invalid, "the source %s lies below none of the folders that may be mounted: %s", what, strings.Join(roots, ", ")).
		WithHint("Add it to mount_roots, if kernels are to see it.")
}

// folder returns what a path leads to, which must be a folder.
func folder(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil && !clean(real) {
		err = fault.New(fault.Invalid, "%q cannot be mounted", real)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(real)
	}
	if err != nil {
		return "", fault.New(fault.Invalid, "the folder %s cannot be mounted: %w", path, err).WithHint("Make it, or correct its path.")
	}
	if !info.IsDir() {
		return "", fault.New(fault.Invalid, "%s is not a folder", path).WithHint("Name the folder that it lies in.")
	}
	return real, nil
}

// Below refuses sources that lie inside of a folder that some kernel may write to, but are not that folder: the kernel could put
// a link in their place between the look at it and the mount.
func Below(wanted, writable []kernels.Mount) error {
	for _, m := range wanted {
		for _, w := range writable {
			source, err := filepath.EvalSymlinks(m.Source)
			outer, outerErr := filepath.EvalSymlinks(w.Source)
			if err == nil && outerErr == nil && source != outer && Within(source, outer) {
				return fault.New(fault.Invalid, "the source %s lies in %s, which kernels may write to", m.Source, w.Source).
					WithHint("Mount one of them only, or mount the outer one read-only.")
			}
		}
	}
	return nil
}
