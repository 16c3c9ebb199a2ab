package main

import (
	"debug/buildinfo"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"cellblock/internal/fault"
)

// findShim returns the path of the shim's binary: the configured one, or the one beside this program.
func findShim(configured string) (string, error) {
	path := configured
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fault.New(fault.Internal, "this program's own path: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "cellblock-shim")
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", fault.New(fault.Unavailable, "there is no shim at %s", path).
			WithHint("Take it from the same archive as cellblock, build both with `make build`, or name it with the setting shim.")
	}
	return filepath.Abs(path)
}

// warnOfShim tells of a shim by which kernels may not start.
func (c *Config) warnOfShim(logger *slog.Logger) {
	if path, err := findShim(c.Shim); err == nil {
		if doubt := shimDoubt(path); doubt != "" {
			logger.Warn("kernels may not start: " + doubt)
		}
	}
}

// shimDoubt is what is wrong with a shim that is there, and may work all the same; empty if nothing is known to be.
func shimDoubt(path string) string {
	theirs, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("cellblock-shim cannot be read as a program (%v): it was not copied whole, perhaps", err)
	}
	own, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return otherBuild(own, theirs)
}

// otherBuild tells of a shim that was built from another commit than this program, as where only one of the two was replaced. Who builds
// without commits is not told.
func otherBuild(own, shim *debug.BuildInfo) string {
	ours, theirs := settings(own)["vcs.revision"], settings(shim)["vcs.revision"]
	if ours == "" || theirs == "" || ours == theirs {
		return ""
	}
	return fmt.Sprintf("cellblock-shim is of commit %.12s, and this program of %.12s: take both from the same archive", theirs, ours)
}
