//go:build linux

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// disk is a small file system of its own, which can be filled.
type disk struct{ dir string }

const diskSize = "size=512m"

func newDisk(t *testing.T) *disk {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, diskSize); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &disk{dir}
}

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill takes all that is free.
func (d *disk) fill(t *testing.T) {
	t.Helper()
	f, err := os.Create(d.filler())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(chunk)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

func (d *disk) free(t *testing.T) {
	t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		t.Fatal(err)
	}
}
