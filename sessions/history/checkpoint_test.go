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
	others := 0
	err := filepath.WalkDir(f.path, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if n := bytes.Count(content, []byte(secret)); n > 0 {
			t.Errorf("%s has it %d times", e.Name(), n)
		}
		others += bytes.Count(content, []byte("another's"))
		return err
	})
	if err != nil || others == 0 {
		t.Errorf("what is another's is found %d times, %v", others, err)
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
