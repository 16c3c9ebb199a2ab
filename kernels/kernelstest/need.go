// Package kernelstest tests what runs kernels. It has a scripted fake kernel that speaks the wire and shows on demand the
// faults that a real one does not, a fake provisioner of such kernels, and TestProvisioner, the one suite that every
// provisioner passes.
package kernelstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cellblock/images"
	"cellblock/kernels"
)

// NoSkip is the environment variable that turns every skip of Need into a failure.
const NoSkip = "CELLBLOCK_TEST_NO_SKIP"

// Need skips the test, loudly, when something that it needs is missing: what names it. With NoSkip=1 it fails instead.
func Need(t testing.TB, ok bool, what string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv(NoSkip) == "1" {
		t.Fatalf("%s is needed and missing, and %s=1 allows no skip", what, NoSkip)
	}
	t.Skipf("SKIPPED, NOT TESTED: %s is missing", what)
}

// Long skips the test in a short run (go test -short): it waits for real kernels, or for minutes.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in a short run: it takes its time")
	}
}

// Python is the kernelspec of the host's own ipykernel, as servers launch it.
var Python = kernelspecOf(images.Python(images.PythonInterpreter))

var hasPython = sync.OnceValue(func() bool {
	return exec.Command("/usr/bin/python3", "-c", "import ipykernel.kernelapp").Run() == nil
})

// NeedPython skips the test where Python cannot run, and in a short run.
func NeedPython(t testing.TB) {
	t.Helper()
	Long(t)
	Need(t, hasPython(), "/usr/bin/python3 with ipykernel")
}

var shim = sync.OnceValues(buildShim)

// shimDir holds the built shim; RemoveShim removes it.
var shimDir string

func buildShim() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if shimDir, err = os.MkdirTemp("", "cellblock-shim-"); err != nil {
		return "", err
	}
	if err := os.Chmod(shimDir, 0o755); err != nil { // a kernel of another uid starts with it
		return "", err
	}
	path := filepath.Join(shimDir, "cellblock-shim")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/cellblock-shim")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &buildError{string(out), err}
	}
	return path, nil
}

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string { return "go build: " + e.err.Error() + "\n" + e.output }
func (e *buildError) Unwrap() error { return e.err }

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	return filepath.Dir(strings.TrimSpace(string(out))), err
}

// BuildShim builds the shim as it is shipped (static, CGO off), once in a test process, and returns its path. It stays
// until RemoveShim.
func BuildShim(t testing.TB) string {
	t.Helper()
	path, err := shim()
	if err != nil {
		t.Fatalf("cannot build the shim: %v", err)
	}
	return path
}

// RemoveShim removes what BuildShim made. For TestMain, after the tests.
func RemoveShim() {
	if shimDir != "" {
		_ = os.RemoveAll(shimDir)
	}
}

// Workspace returns a new folder that belongs to the user that p's kernels run as, and is removed after the test.
func Workspace(t testing.TB, p kernels.Provisioner) string {
	t.Helper()
	dir := ShortDir(t)
	c := p.Capabilities()
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, c.UID, c.GID); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ShortDir returns a new folder with a path of less than 40 bytes, mode 0711, removed after the test: a Unix socket's path
// has at most 107. (t.TempDir carries the test's name.)
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cb-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("cannot remove what the kernel left: %v", err)
		}
	})
	return dir
}
