//go:build unix

package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func timeFar() time.Time { return time.Now().Add(time.Hour) }

// swap puts one thing after the other in a place, each in one step, until stop is closed.
func swap(t *testing.T, place string, stop <-chan struct{}, things ...func(path string) error) {
	t.Helper()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		next := place + ".next"
		_ = os.RemoveAll(next)
		if err := things[i%len(things)](next); err != nil {
			t.Error(err)
			return
		}
		if os.Rename(next, place) != nil { // a folder in the way
			_ = os.RemoveAll(place)
		}
	}
}

// User code that changes what lies under a name, as fast as it can, neither gets us out of the workspace nor holds us up.
func TestRaces(t *testing.T) {
	f, dir, secret := newFolder(t)
	outside := filepath.Dir(secret)
	file := func(path string) error { return os.WriteFile(path, []byte("inside"), 0o644) }
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o666) }
	out := func(path string) error { return os.Symlink(secret, path) }
	folder := func(path string) error {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(path, "secret"), []byte("inside"), 0o644)
	}
	outFolder := func(path string) error { return os.Symlink(outside, path) }
	stop := make(chan struct{})
	var racing sync.WaitGroup
	racing.Go(func() { swap(t, filepath.Join(dir, "x"), stop, file, out, pipe) })
	racing.Go(func() { swap(t, filepath.Join(dir, "d"), stop, folder, outFolder, pipe) })
	done := make(chan int)
	go func() {
		reads := 0
		for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
			for _, name := range []string{"x", "d/secret"} {
				if opened, _, err := f.OpenFile(name); err == nil {
					b, _ := io.ReadAll(opened)
					opened.Close()
					if reads++; string(b) != "inside" && len(b) != 0 && string(b) != "written" {
						t.Errorf("read %q", b)
					}
				}
			}
			_, _, _ = f.Write("x", []byte("written"))
			_, _, _ = f.Write("d/secret", []byte("written"))
			_, _, _ = f.Write("d/new/deep", []byte("written"))
			_, _ = f.Delete("d", true)
			_, _ = f.Scan()
			l, err := f.List(Query{Most: 100})
			for _, e := range l.Entries {
				if e.Kind != Link && strings.Contains(e.Path, "/w") {
					t.Errorf("listed %+v", e)
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
		done <- reads
	}()
	select {
	case reads := <-done:
		if reads == 0 {
			t.Error("nothing could ever be read")
		}
	case <-time.After(20 * time.Second):
		t.Error("held up")
	}
	close(stop)
	racing.Wait()
	if b, err := os.ReadFile(secret); string(b) != "secret" {
		t.Errorf("beside the workspace: %q %v", b, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 2 {
		t.Errorf("made beside the workspace: %v", entries)
	}
}
