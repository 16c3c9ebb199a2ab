//go:build linux

// Package quotatest makes file systems with project quotas, for tests.
package quotatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Must is the environment variable under which tests fail where no such file system can be made. scripts/quota.sh sets it: it
// brings a Linux that can.
const Must = "CELLBLOCK_TEST_QUOTA"

// Mount makes a file system of a kind, "ext4" or "xfs", mounts it, and returns a folder in it that every user may pass. The
// test is skipped, loudly, where this Linux or this user cannot do that.
func Mount(t testing.TB, kind string) string {
	t.Helper()
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "m")
	steps := [][]string{{"truncate", "-s", "512M", image}}
	switch kind {
	case "ext4":
		steps = append(steps, []string{"mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image})
	default:
		steps = append(steps, []string{"mkfs." + kind, "-q", image})
	}
	steps = append(steps, []string{"mkdir", at}, []string{"mount", "-o", "loop,prjquota", image, at}, []string{"chmod", "0711", dir, at})
	for _, step := range steps {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			skip(t, kind, string(out))
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	for parent := dir; parent != "/tmp" && parent != "/"; parent = filepath.Dir(parent) {
		_ = os.Chmod(parent, 0o711)
	}
	return at
}

func skip(t testing.TB, kind, why string) {
	t.Helper()
	if os.Getenv(Must) == "1" {
		t.Fatalf("no %s with project quotas can be mounted: %s", kind, why)
	}
	t.Skipf("SKIPPED, NOT TESTED: no %s with project quotas can be mounted: %s", kind, why)
}
