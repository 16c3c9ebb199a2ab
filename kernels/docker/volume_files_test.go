package docker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A process that was killed when files had moved into a volume leaves none of them, and the folder is there again.
func TestMovesAreFinished(t *testing.T) {
	in := t.TempDir()
	for _, folder := range []string{"a.moved/deep", "b", "b.moved", "c"} {
		if err := os.MkdirAll(filepath.Join(in, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"a.moved/deep/x", "b/mine", "d.moved"} {
		if err := os.WriteFile(filepath.Join(in, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, wantEmpty := &Provisioner{}, filepath.Join(in, "c")
	if err := p.fillWorkspace(t.Context(), nil, "", wantEmpty); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir(in)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{"a", "b", "c", "d.moved"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v; want %v", names, err, want)
	}
	if _, err := os.Stat(filepath.Join(in, "b", "mine")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(in, "c", "x"), nil, 0o600), emptyFolder(wantEmpty)); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(wantEmpty); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
