//go:build unix

package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// Whatever a path says, nothing outside of the workspace is read, written, described or deleted by it.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", ".", "..", "/", "a", "a/b", "../outside", "/workspace/../outside", "link", "link/../../outside", "up/outside",
		"up/../up/outside", "/etc/passwd", "a\x00b", "a\nb", "a\xff", strings.Repeat("x/", 300), strings.Repeat("y", 300), "/workspace", "workspace/a", "a/./b//c/", "file/x"} {
		f.Add(seed)
	}
	const secret = "what lies outside"
	f.Fuzz(func(t *testing.T, name string) {
		top := t.TempDir()
		dir, outside := filepath.Join(top, "workspace"), filepath.Join(top, "outside")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{outside: secret, filepath.Join(dir, "file"): "inside"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for link, to := range map[string]string{"link": outside, "up": ".."} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		folder, err := Open(dir, os.Getuid(), os.Getgid())
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if got := read(t, folder, name); strings.Contains(got, secret) || strings.Contains(got, "root:") {
			t.Errorf("%q reads %q", name, got)
		}
		e, err := folder.Stat(name)
		if err == nil && !filepath.IsLocal(e.Path) {
			t.Errorf("%q is described as %q", name, e.Path)
		}
		if _, _, err := folder.Write(name, []byte("written")); err == nil {
			if got := read(t, folder, name); got != "written" {
				t.Errorf("%q was written and reads %q", name, got)
			}
		} else if fault.KindOf(err) == fault.Internal {
			t.Errorf("%q: %v", name, err)
		}
		_, _ = folder.Delete(name, true) // of what is inside
		if text, err := os.ReadFile(outside); string(text) != secret {
			t.Errorf("%q has changed what lies outside: %q, %v", name, text, err)
		}
		if left, err := os.ReadDir(top); len(left) != 2 {
			t.Errorf("%q has left something outside: %v, %v", name, left, err)
		}
	})
}
