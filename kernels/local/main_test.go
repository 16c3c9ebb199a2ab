//go:build linux

package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		kernelstest.RemoveShim()
		_ = os.RemoveAll(stubDir)
		os.Exit(code)
	}))
}

// stubDir holds the stand-in for the shim once it is built.
var stubDir string

// realShim is the shim as it is shipped; a plain user is given one, because it cannot build it.
func realShim(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("LOCAL_TEST_SHIM"); path != "" {
		return path
	}
	return kernelstest.BuildShim(t)
}

func withShim(t *testing.T) func(*Config) {
	path := realShim(t)
	return func(c *Config) { c.ShimPath = path }
}

// stubShim builds the stand-in for the shim once.
func stubShim(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("LOCAL_TEST_STUB"); path != "" {
		return path
	}
	path, err := buildStub()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildStub = sync.OnceValues(func() (string, error) {
	var err error
	if stubDir, err = os.MkdirTemp("", "stubshim"); err != nil {
		return "", err
	}
	path := filepath.Join(stubDir, "stubshim")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/stubshim")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build stubshim: %w: %s", err, out)
	}
	return path, nil
})
