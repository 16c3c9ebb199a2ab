package history

import (
	"bytes"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
)

// merged is how many outputs are in the database itself, whatever its log has.
func merged(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "immutable=1"}).String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_ = db.QueryRow("SELECT count(*) FROM outputs").Scan(&n) // it fails while the table itself is in the log only
	return n
}

// What is committed is put into the database without a commit that does it, which would take longer than others.
func TestCheckpointsAreMadeBesideCommits(t *testing.T) {
	f := newFolder(t)
	s, path := f.start(t), filepath.Join(f.path, FileName)
	ref := claimed(t, s)
	for i := range 2 * checkpointAfter {
		keep(t, s, ref, i, "a line\n")
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(10 * time.Second); merged(t, path) < checkpointAfter-2; {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%d outputs of %d are in the database after 10 s", merged(t, path), 2*checkpointAfter)
		}
	}
}

// Nothing of what a deleted session was stays in any file, of code, outputs and errors large and small.
func TestDeletedIsOverwritten(t *testing.T) {
	const secret = "the-Secret-of-this-session"
	f := newFolder(t)
	s := f.start(t)
	kept := sessionThatShows(t, s, "kept", "another's")
	for _, id := range []string{"one", "two"} {
		sessionThatShows(t, s, id, secret)
	}
	keep(t, s, kept, 2, "a line of another's\n")
	for _, id := range []string{"one", "two"} {
		if err := s.Delete(t.Context(), sessions.Owner{}, id); err != nil {
			t.Fatal(err)
		}
	}
	if n := countIn(t, f.path, secret); n > 0 {
		t.Errorf("it is there %d times", n)
	}
	if countIn(t, f.path, "another's") == 0 {
		t.Error("what is another's is gone, too")
	}
}

// Where somebody reads while a session is deleted, as a backup does, it is gone once he has read, or the next process is there.
func TestDeletedIsOverwrittenBehindReaders(t *testing.T) {
	const secret = "the-Secret-of-this-session"
	f := newFolder(t)
	s := f.start(t)
	kept := sessionThatShows(t, s, "kept", "another's")
	sessionThatShows(t, s, "one", secret)
	reader, err := s.read.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRow("SELECT count(*) FROM outputs").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), sessions.Owner{}, "one"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * checkpointAfter { // others go on meanwhile
		keep(t, s, kept, 400+i, "a line of another's\n")
	}
	killed := newFolder(t)
	if err := os.CopyFS(killed.path, os.DirFS(f.path)); err != nil {
		t.Fatal(err)
	}
	if countIn(t, killed.path, secret) == 0 {
		t.Fatal("the reader was in nobody's way")
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, f.path, secret)
	killed.start(t)
	awaitGone(t, killed.path, secret)
}

// countIn counts a text in all files of a folder.
func countIn(t *testing.T, folder, text string) (n int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		n += bytes.Count(content, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func awaitGone(t *testing.T, folder, text string) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(20 * time.Second); countIn(t, folder, text) > 0; {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it is there %d times after 20 s", countIn(t, folder, text))
		}
	}
}

// sessionThatShows is a session whose cells all show a text.
func sessionThatShows(t *testing.T, s *Store, id, text string) sessions.SessionRef {
	t.Helper()
	found, err := s.Open(t.Context(), sessions.StoredSession{ID: id, Language: "python", Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 300; n++ {
		outputs := []kernels.Output{{Kind: kernels.OutputStream, Stream: "stdout", Text: strings.Repeat(text+"\n", n)}}
		err := s.Commit(t.Context(), found.Ref,
			sessions.ExecutionQueued{Number: n, MsgID: "m", Code: strings.Repeat("print('"+text+"')\n", n%40+1), Queued: time.Now()},
			sessions.ExecutionBegan{Number: n, Generation: 1, Started: time.Now()},
			sessions.OutputsKept{Number: n, Outputs: outputs},
			sessions.ExecutionEnded{Number: n, Ended: time.Now(), Own: 1, Result: sessions.Result{Result: kernels.Result{
				Status: kernels.StatusError, Error: &kernels.ExecError{Name: "E", Value: text}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(t.Context(), found.Ref, sessions.OutputsKept{Number: 1, First: 1, Outputs: []kernels.Output{{Kind: kernels.OutputStream, Stream: "stdout", Text: text + strings.Repeat("x", 100_000)}}}); err != nil {
		t.Fatal(err)
	}
	return found.Ref
}
