package main

import (
	"os"
	"path/filepath"
	"testing"

	"cellblock/internal/fault"
)

func TestInstallationID(t *testing.T) {
	dir := t.TempDir()
	first, err := installationID(dir)
	again, againErr := installationID(dir)
	if err != nil || againErr != nil || len(first) != 2*installationBytes || first != again {
		t.Fatalf("%q, %v; %q, %v", first, err, again, againErr)
	}
	if other, _ := installationID(t.TempDir()); other == first {
		t.Error("two installations have one id")
	}
	for _, damaged := range []string{"", "abc", "zz", first + "00"} {
		if err := os.WriteFile(filepath.Join(dir, "installation"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := installationID(dir); fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" {
			t.Errorf("%q: %q, %v", damaged, id, err)
		}
	}
}
