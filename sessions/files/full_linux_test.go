package files

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// A part for which there was no room leaves nothing behind, so that it can be sent again when there is.
func TestPartThatDoesNotFit(t *testing.T) {
	f, dir, _ := newFolder(t)
	if _, err := f.Add("a", "w", 0, []byte("one ")); err != nil {
		t.Fatal(err)
	}
	withFileSize(t, 6, func() {
		if size, err := f.Add("a", "w", 4, []byte("two")); err == nil {
			t.Errorf("it took %d bytes", size)
		}
	})
	if size, err := f.Add("a", "w", 4, []byte("two")); size != 7 || err != nil {
		t.Errorf("again: %d, %v", size, err)
	}
	if _, _, err := f.Finish("a", "w", 7); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a")); string(text) != "one two" {
		t.Errorf("it is %q, %v", text, err)
	}
}

// withFileSize calls f while no file may be larger, as on a disk that is full.
func withFileSize(t *testing.T, most uint64, f func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = most
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}
