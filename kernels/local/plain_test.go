//go:build linux

package local

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellblock/kernels/kernelstest"
)

// plainUID is a user without rights for whom root runs the tests again.
const plainUID = 65534

// TestAsPlainUser runs this package's tests again as a user who is not root: kernels then run as the server itself, made
// by unprivileged user namespaces, and there are other cgroups or none. What cannot be had there may be skipped.
func TestAsPlainUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is the plain user already")
	}
	kernelstest.Long(t)
	dir := passable(t)
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, plainUID, plainUID); err != nil {
		t.Fatal(err)
	}
	self := copyProgram(t, os.Args[0], filepath.Join(dir, "local.test"))
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.timeout=8m", "-test.skip=^(Fuzz|TestBash|TestNode|TestType|TestPythonKernel)")
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "HOME=" + tmp,
		"LOCAL_TEST_STUB=" + copyProgram(t, stubShim(t), filepath.Join(dir, "stubshim")),
		"LOCAL_TEST_SHIM=" + copyProgram(t, realShim(t), filepath.Join(dir, "cellblock-shim")),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUID, Gid: plainUID, Groups: []uint32{}}}
	out, err := cmd.CombinedOutput()
	for _, line := range strings.Split(string(out), "\n") {
		if !strings.Contains(line, "=== ") && !strings.Contains(line, "--- PASS") {
			t.Log(line)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyProgram makes a copy that every user may run.
func copyProgram(t *testing.T, from, to string) string {
	t.Helper()
	src, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}
