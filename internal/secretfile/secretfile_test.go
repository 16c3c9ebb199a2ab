package secretfile

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"cellblock/internal/fault"
)

func random() ([]byte, error) { return []byte(rand.Text()), nil }

// Whoever asks at once gets the same secret, and nothing is left beside it.
func TestEnsureMakesItOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	results := make([]string, 16)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			data, err := Ensure(path, random)
			if err != nil {
				t.Error(err)
			}
			results[i] = string(data)
		})
	}
	wg.Wait()
	for _, r := range results {
		if r == "" || r != results[0] {
			t.Fatalf("different secrets: %q", results)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for _, text := range []string{"first", "second"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if data, err := Ensure(path, random); err != nil || string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	noEntropy := errors.New("no entropy")
	for _, tt := range []struct {
		name    string
		prepare func(path string) error
		fresh   func() ([]byte, error)
		kind    fault.Kind
	}{
		{"readable by the group", func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Chmod(p, 0o640)) }, random, fault.Invalid},
		{"a link", func(p string) error { return os.Symlink("/dev/null", p) }, random, fault.Invalid},
		{"a folder", func(p string) error { return os.Mkdir(p, 0o700) }, random, fault.Invalid},
		{"nothing to make it of", func(string) error { return nil }, func() ([]byte, error) { return nil, noEntropy }, fault.Internal},
		{"no folder for it", func(p string) error { return os.Remove(filepath.Dir(p)) }, random, fault.Unavailable},
	} {
		path := filepath.Join(t.TempDir(), "folder", "key")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), tt.prepare(path)); err != nil {
			t.Fatal(err)
		}
		data, err := Ensure(path, tt.fresh)
		if err == nil || fault.KindOf(err) != tt.kind {
			t.Errorf("%s: %q, %v", tt.name, data, err)
		}
	}
}
