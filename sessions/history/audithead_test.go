package history

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

func TestAuditHeads(t *testing.T) {
	folder := t.TempDir()
	if _, err := ReadAuditHead(t.Context(), folder, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no history: %v", err)
	}
	s := limited(t, Options{Folder: folder})
	defer closeStore(t, s)
	for _, text := range []string{"first", "second"} {
		if err := s.SetAuditHead(t.Context(), "a", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for log, want := range map[string]string{"a": "second", "b": ""} {
		own, err := s.AuditHead(t.Context(), log)
		others, othersErr := ReadAuditHead(t.Context(), folder, log)
		if string(own) != want || string(others) != want || err != nil || othersErr != nil {
			t.Errorf("%s: %q %v, %q %v", log, own, err, others, othersErr)
		}
	}
	copied := filepath.Join(t.TempDir(), FileName) // is of another installation: its log begins anew
	snap, err := TakeSnapshot(t.Context(), folder, copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadAuditHead(t.Context(), filepath.Dir(copied), "a"); text != nil || err != nil {
		t.Errorf("in a copy: %q, %v", text, err)
	}
}

// A history that an earlier cellblock has written says nothing of the log, and that is no error.
func TestOldHistoryHasNoAuditHeads(t *testing.T) {
	folder, _ := old(t, auditHeadsVersion-1)
	if text, err := ReadAuditHead(t.Context(), folder, "a"); text != nil || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
