// Package e2e drives the real binary with real kernels, as its users would: over HTTP with an MCP client that we did not
// write, over stdio, and from the command line.
package e2e

import (
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) { rig.Main(m) }

// eachRuntime runs a test on every way to run kernels, side by side and beside other such tests: mostly they wait. Nothing may
// come behind it in a test.
func eachRuntime(t *testing.T, test func(t *testing.T, runtime string)) {
	onRuntimes(t, rig.Runtimes(t), test)
}

// sandboxAndContainers is eachRuntime for what servers do above all of them, be it with tokens or what is kept. Podman's containers
// are launched by the code that launches Docker's, and differ in how they begin, end, are bounded and are found again, in whose the
// files are that they share with the server, and in how a stream is taken up, of which the tests of eachRuntime are: beside Docker
// they come here only with CELLBLOCK_SUITE=full.
func sandboxAndContainers(t *testing.T, test func(t *testing.T, runtime string)) {
	runtimes := rig.Runtimes(t)
	if slices.Contains(runtimes, "docker") && !kernelstest.FullSuite() {
		runtimes = slices.DeleteFunc(runtimes, func(name string) bool { return name == "podman" })
	}
	onRuntimes(t, runtimes, test)
}

func onRuntimes(t *testing.T, runtimes []string, test func(t *testing.T, runtime string)) {
	t.Parallel()
	for _, name := range runtimes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

// noPool keeps a server from starting kernels that the test does not use, where it is not about them: each takes a second of
// processor time, as much as the kernel that the test is about.
const noPool = "--pool-size=0"

// start starts a server with folders of its own, and no pool. Its kernels end with it, unless the arguments say otherwise.
func start(t *testing.T, runtime string, args ...string) *rig.Server {
	t.Helper()
	return startIn(t, t.TempDir(), runtime, append([]string{noPool}, args...)...)
}

// startIn starts a server on a data folder that other servers may have used, with a pool as by default.
func startIn(t *testing.T, dataDir, runtime string, args ...string) *rig.Server {
	t.Helper()
	i := rig.Installation{DataDir: dataDir, RunDir: runDirOf(t, dataDir), Flags: rig.RuntimeFlags(runtime)}
	s := i.Serve(t, args...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.Log())
		}
	})
	return s
}

// runDirOf is the run folder of whoever uses a data folder: a short path, because sockets lie there.
func runDirOf(t *testing.T, dataDir string) string {
	t.Helper()
	dir := fmt.Sprintf("/tmp/cb%x", crc32.ChecksumIEEE([]byte(dataDir)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// call calls a tool and fails the test on a protocol error.
func call(t *testing.T, c *rig.Client, tool string, args map[string]any) rig.Result {
	t.Helper()
	if strings.HasPrefix(tool, "execute_") && args["wait_seconds"] == nil { // longer than by default: the machine may be busy
		args = maps.Clone(args)
		args["wait_seconds"] = 120
	}
	r, err := c.Call(t.Context(), tool, args, nil)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// python runs code in a session.
func python(t *testing.T, c *rig.Client, session, code string) rig.Result {
	t.Helper()
	return call(t, c, "execute_python", map[string]any{"code": code, "session_id": session})
}

// wantText fails unless the text holds every part.
func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}
