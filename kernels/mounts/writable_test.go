//go:build unix

package mounts

import (
	"os"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	me, group := os.Geteuid(), os.Getegid()
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
		err := Writable([]kernels.Mount{{Source: dir, Target: "/data", Writable: true}}, tt.uid, tt.gid)
		if (err == nil) != tt.want || err != nil && (!strings.Contains(err.Error(), dir) || !strings.Contains(fault.Hint(err), "chown")) {
			t.Errorf("%o for %d:%d: %v", tt.mode, tt.uid, tt.gid, err)
		}
		if err := Writable([]kernels.Mount{{Source: dir, Target: "/data"}}, tt.uid, tt.gid); err != nil {
			t.Errorf("read-only, %o: %v", tt.mode, err)
		}
	}
}
