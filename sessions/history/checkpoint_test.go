package history

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
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

// The log stays bounded also where no moment is without a commit.
func TestLogIsBounded(t *testing.T) {
	f := newFolder(t)
	s := f.start(t)
	ref := claimed(t, s)
	const page, beside = 4096 + 24, 64
	log := filepath.Join(f.path, FileName) + "-wal"
	for i := range mostUnmerged {
		keep(t, s, ref, i, "a line\n")
		if i%100 != 0 {
			continue
		}
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > (mostUnmerged+beside)*page {
			t.Fatalf("after %d commits the log has %d bytes", i+1, info.Size())
		}
	}
}
