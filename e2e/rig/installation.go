package rig

import (
	"os"
	"testing"
)

// Installation is what outlives a server: its folders, and how it runs kernels. Servers are started on it one after another.
type Installation struct {
	// DataDir and RunDir are its folders, Flags those of serve, Env what servers find in their environment besides Environment.
	DataDir, RunDir string
	Flags, Env      []string
}

// Install makes an installation with folders of its own, which go after the test.
func Install(t testing.TB, flags ...string) *Installation {
	t.Helper()
	runDir, err := os.MkdirTemp("/tmp", "cb") // short: a Unix socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runDir) })
	return &Installation{DataDir: t.TempDir(), RunDir: runDir, Flags: flags}
}

// Serve starts a server on a free port and waits until it says that it is ready. Its kernels end with it, unless the
// installation's flags or args say otherwise. It is stopped after the test, as an operator would, and fails the test if it
// does not end well.
func (i *Installation) Serve(t testing.TB, args ...string) *Server {
	t.Helper()
	all := []string{"serve", "--addr", "127.0.0.1:0", "--data-dir", i.DataDir, "--run-dir", i.RunDir, "--on-shutdown", "stop"}
	return serve(t, i, append(append(all, i.Flags...), args...))
}
