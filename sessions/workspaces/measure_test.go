package workspaces

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	empty, err := measure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(deep, "data"), 1<<20)
	for link, to := range map[string]string{"up": "..", "root": "/", "gone": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	sparse, err := os.Create(filepath.Join(dir, "holes"))
	if err == nil {
		err = sparse.Truncate(1 << 40)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = sparse.Close()
	size, err := measure(t.Context(), dir)
	if grown := size - empty; err != nil || grown < 1<<20 || grown > 1<<20+64<<10 {
		t.Errorf("it has grown by %d, %v", grown, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ended, dir); err == nil {
		t.Error("it was measured although nobody wants to know")
	}
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A session without a workspace is not measured by those of others.
func TestNoWorkspaceIsNotAllOfThem(t *testing.T) {
	w := labelledFolders(t, 1)
	if size, err := w.Measure(t.Context(), Key{alice, "s"}); err == nil {
		t.Errorf("%d bytes", size)
	}
}
