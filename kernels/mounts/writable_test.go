//go:build unix

package mounts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	me, group := os.Geteuid()+1, os.Getegid() // a user of whom only the mode tells
	if err := os.Chown(dir, me, group); err != nil {
		t.Skip("only root can give a folder away")
	}
	for _, tt := range []struct {
		mode     os.FileMode
		uid, gid int
		want     bool
	}{
		{0o700, me, group, true}, {0o500, me, group, false}, {0o077, me, group, false}, {0o200, me, group, false},
		{0o070, me + 1, group, true}, {0o707, me + 1, group, false}, {0o003, me + 1, group + 1, true}, {0o770, me + 1, group + 1, false}, {0o755, me + 1, group + 1, false},
	} {
		if err := os.Chmod(dir, tt.mode); err != nil {
			t.Fatal(err)
		}
		doubt, err := Writable([]kernels.Mount{{Source: dir, Target: "/data", Writable: true}}, tt.uid, tt.gid)
		if err != nil || (doubt == nil) != tt.want || doubt != nil && (!strings.Contains(doubt.Error(), "may not be able to write to "+dir) || !strings.Contains(fault.Hint(doubt), "chown")) {
			t.Errorf("%o for %d:%d: %v, %v", tt.mode, tt.uid, tt.gid, doubt, err)
		}
		if doubt, err := Writable([]kernels.Mount{{Source: dir, Target: "/data"}}, tt.uid, tt.gid); doubt != nil || err != nil {
			t.Errorf("read-only, %o: %v, %v", tt.mode, doubt, err)
		}
	}
}

// Of our own user the system tells, which knows of further groups too.
func TestWritableByOurselves(t *testing.T) {
	const variable, uid, other, further = "CELLBLOCK_TEST_WRITABLE_DIR", 23456, 23457, 23458
	if dir := os.Getenv(variable); dir != "" {
		for name, want := range map[string]bool{"further": true, "closed": false} {
			source := filepath.Join(dir, name)
			doubt, err := Writable([]kernels.Mount{{Source: source, Target: "/data", Writable: true}}, uid, uid)
			if doubt != nil || (err == nil) != want || err != nil && !strings.Contains(err.Error(), "may not write to "+source) {
				t.Errorf("%s: %v, %v", name, doubt, err)
			}
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir, err := os.MkdirTemp("", "writable")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, gid := range map[string]int{".": other, "further": further, "closed": other} {
		path := filepath.Join(dir, name)
		_ = os.Mkdir(path, 0o770)
		if err := os.Chown(path, other, gid); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{".": 0o755, "further": 0o770, "closed": 0o770} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestWritableByOurselves$", "-test.v")
	again.Dir, again.Env = "/", []string{variable + "=" + dir}
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{further}}}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestWritableByOurselves") {
		t.Errorf("as user %d: %v\n%s", uid, err, out)
	}
}
