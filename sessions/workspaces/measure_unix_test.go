//go:build unix

package workspaces

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A folder that user code has made a pipe of, after it was seen, is not waited for.
func TestFoldersDoNotWaitForPipes(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := folders{root.FS(), root}
	if _, err := f.ReadDir("pipe"); err == nil {
		t.Error("a pipe was read as a folder")
	}
	if entries, err := f.ReadDir("."); err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
	if entries, err := f.ReadDir("folder"); err != nil || len(entries) != 0 {
		t.Errorf("%v %v", entries, err)
	}
}
