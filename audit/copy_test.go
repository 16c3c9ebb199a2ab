package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// database keeps copies of heads, unless it is broken.
type database struct {
	mu     sync.Mutex
	text   []byte
	broken bool
}

func (d *database) AuditHead(context.Context, string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return nil, errors.New("broken")
	}
	return d.text, nil
}

func (d *database) SetAuditHead(_ context.Context, _ string, text []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return errors.New("broken")
	}
	d.text = slices.Clone(text)
	return nil
}

func (d *database) keeps(o *Options) { o.Copies = d }

// check verifies a log against a copy of its head.
func check(t *testing.T, dir string, copied []byte) Report {
	t.Helper()
	r, err := Verify(Check{Path: filepath.Join(dir, "audit.jsonl"), Key: testKey, Copy: copied})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// filesIn are the contents of a folder's files.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		var text []byte
		if text, err = os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
			found[e.Name()] = string(text)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// putBack makes a folder hold these files and no others.
func putBack(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name := range filesIn(t, dir) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Log and head that were taken away or exchanged together are found out by the copy; so they are by whoever writes next, who
// goes on behind the last line that is known to have been written.
func TestLogAndHeadPutBackTogether(t *testing.T) {
	other := written(t, 12)
	for name, tt := range map[string]struct {
		files        func(t *testing.T, older map[string]string) map[string]string
		want         string
		told, behind string
	}{
		"nothing is left": {func(*testing.T, map[string]string) map[string]string { return nil },
			"lines 1 to 8 are missing", "the log ended with line 0, though 8 had been written", "lines 1 to 8 are missing"},
		"an older state": {func(_ *testing.T, older map[string]string) map[string]string { return older },
			"lines 4 to 8 are missing", "the log ended with line 3, though 8 had been written", "lines 4 to 8 are missing"},
		"another log": {func(t *testing.T, _ map[string]string) map[string]string { return filesIn(t, other) },
			"line 8 is not the one that the database names", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			db := &database{}
			dir := written(t, 3, db.keeps)
			older := filesIn(t, dir)
			writeMore(t, dir, 5, db.keeps)
			if r := check(t, dir, db.text); len(r.Problems)+len(r.Notes) > 0 || r.Lines != 8 {
				t.Fatalf("before: %+v", r)
			}
			putBack(t, dir, tt.files(t, older))
			if r := check(t, dir, db.text); !strings.Contains(strings.Join(r.Problems, "\n"), tt.want) {
				t.Errorf("%q is not among\n%s", tt.want, strings.Join(r.Problems, "\n"))
			}
			if tt.told == "" {
				return
			}
			writeMore(t, dir, 2, db.keeps)
			r := check(t, dir, db.text)
			for _, want := range []string{tt.told, tt.behind} {
				if !strings.Contains(strings.Join(r.Problems, "\n"), want) {
					t.Errorf("afterwards %q is not among\n%s", want, strings.Join(r.Problems, "\n"))
				}
			}
			if r.Last != 11 {
				t.Errorf("the lines go on up to %d", r.Last)
			}
		})
	}
}

// A log that disappears while its writer runs is no new one either.
func TestLogTakenAwayWhileItIsWritten(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	l.Required = true
	for n := range 2 {
		if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			putBack(t, dir, nil)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, dir); !strings.Contains(fmt.Sprint(r.Problems), "the log ended with line 0, though 1 had been written") {
		t.Errorf("%+v", r)
	}
}

// A copy of another key says that there was a log, and no more.
func TestCopyOfAnotherKey(t *testing.T) {
	db := &database{}
	written(t, 3, db.keeps, func(o *Options) { o.Key = []byte("another key") })
	text := db.text
	dir := written(t, 2, db.keeps)
	if r := verified(t, dir); !strings.Contains(fmt.Sprint(r.Problems), "sealed with another key") || r.Lines != 3 {
		t.Errorf("%+v", r)
	}
	if r := check(t, dir, text); !strings.Contains(fmt.Sprint(r.Problems), "is not of this log, or was changed") {
		t.Errorf("%+v", r)
	}
	if r := check(t, dir, db.text); strings.Contains(fmt.Sprint(r.Problems), "database") {
		t.Errorf("with its own copy: %+v", r)
	}
}

// Who changes the copy, so that an older log and head fit it, is told of: the writer makes a new copy, and not in silence.
func TestCopyThatWasChanged(t *testing.T) {
	db := &database{}
	dir := written(t, 3, db.keeps)
	older := filesIn(t, dir)
	writeMore(t, dir, 5, db.keeps)
	putBack(t, dir, older)
	db.text = []byte("{}")
	writeMore(t, dir, 1, db.keeps)
	if r := check(t, dir, db.text); !strings.Contains(fmt.Sprint(r.Problems), "put back to line 3 together is not known") || r.Lines != 5 {
		t.Errorf("%+v", r)
	}
}

// A database that does not work keeps nothing from being written, and nobody from verifying with what it had.
func TestCopiesThatCannotBeKept(t *testing.T) {
	db := &database{}
	dir := written(t, 2, db.keeps)
	db.broken = true
	writeMore(t, dir, 2, db.keeps)
	if r := check(t, dir, db.text); len(r.Problems) > 0 || r.Lines != 4 {
		t.Errorf("%+v", r)
	}
}
