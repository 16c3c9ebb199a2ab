package e2e

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Files of any size go into a workspace and come out again; nothing of this machine is overwritten unless that is meant.
func TestLargeFilesByCommand(t *testing.T) {
	t.Parallel()
	s := start(t, "local")
	env, folder := []string{"CELLBLOCK_URL=" + s.URL}, t.TempDir()
	files := func(want int, args ...string) string {
		t.Helper()
		said, code := cellblock(t, env, "", append([]string{"--data-dir", s.DataDir, "files"}, args...)...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d\n%s", args, code, want, said)
		}
		return said
	}
	large := make([]byte, 17<<20)
	for i, r := 0, rand.NewChaCha8([32]byte{7}); i < len(large); i += 1 << 20 {
		_, _ = r.Read(large[i : i+1<<20])
	}
	in, out := filepath.Join(folder, "in.bin"), filepath.Join(folder, "out.bin")
	if err := os.WriteFile(in, large, 0o600); err != nil {
		t.Fatal(err)
	}
	wantText(t, files(0, "put", "big", in, "data/"), "Wrote data/in.bin in session big, 17 MiB.")
	wantText(t, files(0, "get", "big", "data/in.bin", "-o", out), out)
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes came out, %v", len(got), err)
	}
	const conflict, notFound, invalid = 65, 66, 2
	wantText(t, files(conflict, "get", "big", "data/in.bin", "-o", out), "is there already", "--force")
	wantText(t, files(conflict, "get", "big", "data/in.bin", "-o", folder, "--force"), "no file")
	files(0, "get", "big", "data/in.bin", "-o", out, "--force")
	wantText(t, files(notFound, "get", "big", "nothing"), "there is no")
	wantText(t, files(notFound, "rm", "big", "nothing"), "there is no")
	wantText(t, files(notFound, "put", "big", filepath.Join(folder, "nothing")), "cannot be read")
	wantText(t, files(invalid, "put", "big", folder), "is a folder")
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("left are %v, %v", left, err)
	}
}
