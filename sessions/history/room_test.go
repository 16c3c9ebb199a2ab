package history

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
)

// Whether there is room is found out by trying, and nothing is left of that.
func TestRoom(t *testing.T) {
	f := newFolder(t)
	s := f.start(t)
	if err := s.Room(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(f.path, ".room-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	away := f.path + ".away"
	if err := os.Rename(f.path, away); err != nil {
		t.Fatal(err)
	}
	wantTrouble(t, s.Room(), "nothing can be written to the data folder", "data folder")
	if err := os.Rename(away, f.path); err != nil {
		t.Fatal(err)
	}
	if err := s.Room(); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// A disk that hangs holds nobody up for long, and is not tried again beside an attempt that hangs.
func TestRoomOnADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := &attempt{done: make(chan struct{})}
		r := room{folder: "/nowhere", last: hangs}
		for range 2 {
			begun := time.Now()
			if err := r.look(); fault.KindOf(err) != fault.Timeout || fault.Hint(err) == "" || time.Since(begun) != roomPatience {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
		}
		if r.last != hangs {
			t.Error("another attempt was made")
		}
		close(hangs.done)
		if err := r.look(); err != nil {
			t.Errorf("what it found is %v", err)
		}
	})
}
