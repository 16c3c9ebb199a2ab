package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"cellblock/internal/fault"
)

func TestKey(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadKey(dir); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a key for verifying where there is none: %v", err)
	}
	key, err := Key(dir)
	if err != nil || len(key) != keyBytes {
		t.Fatal(key, err)
	}
	if again, err := ReadKey(dir); err != nil || !bytes.Equal(key, again) {
		t.Error(again, err)
	}
	if info, err := os.Stat(filepath.Join(dir, KeyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, KeyName), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Key(dir); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
}
