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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	dir, err := os.MkdirTemp("", "stubshim")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "stubshim")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/stubshim")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build stubshim: %w: %s", err, out)
	}
	return path, nil
})
