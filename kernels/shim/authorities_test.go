//go:build linux

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/kernels/stream"
)

func TestImageAuthorities(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	absent, most, large := filepath.Join(dir, "absent"), write("most", maxAuthorities), write("large", maxAuthorities+1)
	for _, c := range []struct {
		paths []string
		size  int
		fails bool
	}{{nil, 0, false}, {[]string{absent, dir}, 0, false}, {[]string{absent, most, large}, maxAuthorities, false}, {[]string{large, most}, 0, true}} {
		text, err := imageAuthorities(c.paths)
		if len(text) != c.size || (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), large) {
			t.Errorf("%v: %d bytes, %v", c.paths, len(text), err)
		}
	}
}

// The kernel's file has whom the operator trusts, behind those of the image.
func TestAuthoritiesOfAKernel(t *testing.T) {
	c := stream.Config{RunDir: filepath.Join(t.TempDir(), "run"), Egress: &stream.Egress{Authorities: "of the operator"}}
	if err := writeAuthorities(c); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(authoritiesEnv(c)["SSL_CERT_FILE"])
	if err != nil || !strings.HasSuffix(string(text), "\nof the operator") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
