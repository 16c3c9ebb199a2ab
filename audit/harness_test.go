package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = []byte("a key for tests")

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func openLog(t testing.TB, dir string, change ...func(*Options)) *Log {
	t.Helper()
	o := Options{Path: filepath.Join(dir, "audit.jsonl"), Key: testKey, Logger: quiet}
	for _, c := range change {
		c(&o)
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// written makes a log of n lines and returns its folder.
func written(t testing.TB, n int, change ...func(*Options)) string {
	t.Helper()
	dir := t.TempDir()
	writeMore(t, dir, n, change...)
	return dir
}

func writeMore(t testing.TB, dir string, n int, change ...func(*Options)) {
	t.Helper()
	l := openLog(t, dir, change...)
	l.Required = true // one write each
	for i := range n {
		if err := l.Require(t.Context(), Entry{Event: Answered, Tool: "execute_python", Subject: "ann", Session: fmt.Sprintf("s%d", i), Status: "ok"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func small(o *Options) { o.MaxBytes = 1500 } // about five lines

func verified(t *testing.T, dir string) Report {
	t.Helper()
	r, err := Verify(Check{Path: filepath.Join(dir, "audit.jsonl"), Key: testKey, From: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// linesOf returns all lines of a log, and the files that they are in.
func linesOf(t *testing.T, dir string) (files []string, lines [][]byte) {
	t.Helper()
	files, err := names{filepath.Join(dir, "audit.jsonl")}.files()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(text) {
			lines = append(lines, slices.Clone(l))
		}
	}
	return files, lines
}

func appendTo(t *testing.T, name string, text []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(text)
		err = cmpErr(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// broken keeps a log from being written, and returns what makes it good again.
func broken(t *testing.T, dir string) (mend func()) {
	t.Helper()
	in := filepath.Join(dir, "audit.jsonl.lock") // a folder where a file is to be
	if err := errors.Join(os.RemoveAll(in), os.Mkdir(in, 0o700)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(in); err != nil {
			t.Fatal(err)
		}
	}
}
