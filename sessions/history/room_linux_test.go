package history

import (
	"os"
	"path/filepath"
	"testing"
)

// A full disk is told although nobody has written anything to it since, and so is the end of that.
func TestRoomOnAFullDisk(t *testing.T) {
	f := &folder{path: mountSmall(t), slots: map[string]*Store{}}
	s := f.start(t)
	ballast := filepath.Join(f.path, "ballast")
	if err := takeAll(ballast); err != nil {
		t.Fatal(err)
	}
	wantTrouble(t, s.Room(), "the disk is full", "free some space")
	if err := s.Health(); err != nil {
		t.Errorf("what was written last: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(f.path, ".room-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Room(); err != nil {
		t.Errorf("after there was room again: %v", err)
	}
}
