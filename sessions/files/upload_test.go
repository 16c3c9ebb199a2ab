package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

// A file that comes in parts appears when it is whole, and then at once.
func TestUpload(t *testing.T) {
	f, dir, _ := newFolder(t)
	at := filepath.Join(dir, "data", "big")
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, at, "old")
	if err := os.Chmod(at, 0o640); err != nil {
		t.Fatal(err)
	}
	sent := int64(0)
	for _, part := range []string{"one ", "two ", "three"} {
		offset := sent
		sent += int64(len(part))
		if size, err := f.Add("/workspace/data/big", "w1", offset, []byte(part)); size != sent || err != nil {
			t.Errorf("after %q: %d, %v", part, size, err)
		}
		if text, err := os.ReadFile(at); err != nil || string(text) != "old" {
			t.Errorf("meanwhile it is %q, %v", text, err)
		}
		if l, err := f.List(Query{Path: "data", Most: 9}); err != nil || l.Files != 1 || l.Entries[0].Path != "data/big" {
			t.Errorf("meanwhile there are %+v, %v", l, err)
		}
	}
	if _, err := f.Add("data/big", "w2", 0, []byte("another's")); err != nil {
		t.Error(err)
	}
	e, created, err := f.Finish("data/big", "w1", 13)
	text, _ := os.ReadFile(at)
	info, statErr := os.Stat(at)
	if err != nil || created || e.Path != "data/big" || e.Size != 13 || string(text) != "one two three" || statErr != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%+v %v %v: %q, %v", e, created, err, text, info.Mode())
	}
	if _, _, err := f.Finish("data/big", "w1", 13); fault.KindOf(err) != fault.NotFound {
		t.Errorf("finished twice: %v", err)
	}
	if e, created, err := f.Finish("./data//big", "w2", 9); err != nil || created || e.Size != 9 {
		t.Errorf("another's: %+v, %v", e, err)
	}
	left, _ := os.ReadDir(filepath.Dir(at))
	if len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A part that comes before the first one leaves nothing behind.
func TestUploadWithoutItsBegin(t *testing.T) {
	f, dir, _ := newFolder(t)
	if _, err := f.Add("big", "w", 5, []byte("x")); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "0 bytes have come") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+uploadPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What a sender has left off goes with the next upload, what another one is at does not.
func TestForgottenUploads(t *testing.T) {
	f, dir, _ := newFolder(t)
	for _, word := range []string{"forgotten", "under-way"} {
		if _, err := f.Add("a", word, 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * uploadAge)
	if err := os.Chtimes(filepath.Join(dir, uploadPrefix+"forgotten"), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add("b", "new", 0, []byte("x")); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{"forgotten": false, "under-way": true, "new": true} {
		if _, err := os.Lstat(filepath.Join(dir, uploadPrefix+word)); (err == nil) != want {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func TestUploadRefusals(t *testing.T) {
	f, dir, _ := newFolder(t)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, uploadPrefix+"link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, uploadPrefix+"folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, word string
		want       fault.Kind
	}{
		{"a", "", fault.Invalid}, {"a", "../x", fault.Invalid}, {"a", strings.Repeat("x", 65), fault.Invalid}, {"../a", "w", fault.Invalid},
		{".", "w", fault.Invalid}, {"a", "link", fault.Invalid}, {"a", "folder", fault.Unavailable},
	} {
		if _, err := f.Add(tt.path, tt.word, 0, []byte("x")); fault.KindOf(err) != tt.want {
			t.Errorf("%s %s: %v", tt.path, tt.word, err)
		}
	}
	if _, err := f.Add("folder", "w", 0, []byte("x")); err != nil {
		t.Error(err)
	}
	if _, _, err := f.Finish("folder", "w", 1); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a folder was replaced: %v", err)
	}
}

// Parts may come twice, as when an answer was lost; one that is missing is noticed, at the end too.
func TestPartsThatAreRepeatedOrLost(t *testing.T) {
	f, dir, _ := newFolder(t)
	add := func(offset int64, part string, want int64) {
		t.Helper()
		if size, err := f.Add("a", "w", offset, []byte(part)); size != want || err != nil {
			t.Errorf("%q at %d: %d, %v", part, offset, size, err)
		}
	}
	refused := func(err error, hint string) {
		t.Helper()
		if fault.KindOf(err) != fault.Conflict || !strings.Contains(fault.Hint(err), hint) {
			t.Errorf("%v, %q", err, fault.Hint(err))
		}
	}
	add(0, "one ", 4)
	add(0, "one ", 4)
	add(4, "two ", 8)
	add(0, "one ", 8)
	_, err := f.Add("a", "w", 13, []byte("four"))
	refused(err, "offset 8")
	_, _, err = f.Finish("a", "w", 17)
	refused(err, "offset 8")
	add(8, "three", 13)
	if _, _, err := f.Finish("a", "w", 13); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(text) != "one two three" {
		t.Errorf("%q, %v", text, err)
	}
}
