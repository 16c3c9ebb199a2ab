//go:build linux && (amd64 || arm64)

package quota

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

// unbounded is a folder with files, on a file system that has no projects on any machine.
const unbounded = "/proc"

// The system writes as many bytes as its own structs have, wherever ours end.
func TestStructsAreAsLargeAsTheSystems(t *testing.T) {
	for name, sizes := range map[string][2]uintptr{
		"fsxattr":       {unsafe.Sizeof(fileAttributes{}), 28},
		"if_dqblk":      {unsafe.Sizeof(quotaBlock{}), 72},
		"fs_quota_stat": {unsafe.Sizeof(quotaState{}), 80},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s: %d bytes, the system's has %d", name, sizes[0], sizes[1])
		}
	}
}

// Code in a session can make a link of what the server bounds: another's folder must not be bounded through it.
func TestLinksAreNotFollowed(t *testing.T) {
	root := t.TempDir()
	target, link, file := filepath.Join(root, "target"), filepath.Join(root, "link"), filepath.Join(root, "file")
	if err := errors.Join(os.Mkdir(target, 0o700), os.Symlink(target, link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, file} {
		for verb, err := range map[string]error{
			"check": Check(name), "bound": Bound(name, 1<<20), "lift": Lift(name), "join it": Join(target, name), "join from it": Join(name, target),
		} {
			if !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
				t.Errorf("%s %s: %v", verb, filepath.Base(name), err)
			}
		}
	}
}

// A server that was given quotas once, and now runs where there are none, must still be able to delete and to move folders.
func TestFoldersWithoutProjectsAreLeftAlone(t *testing.T) {
	for verb, err := range map[string]error{"lift": Lift(unbounded), "join": Join(unbounded, unbounded), "bound what has files": Bound(unbounded, 1<<20)} {
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestMostFiles(t *testing.T) {
	for limit, want := range map[int64]int64{0: leastFiles, 1: leastFiles, 1 << 20: leastFiles, leastFiles * bytesPerFile: leastFiles, 1 << 30: 65536} {
		if got := mostFiles(limit); got != want {
			t.Errorf("%d bytes allow %d files, want %d", limit, got, want)
		}
	}
}
