package history

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// Snapshot is the history of a data folder as it was at one moment, in a database file of its own. Until Close none of the
// files that it names goes from the data folder, whatever is deleted there meanwhile.
type Snapshot struct {
	db   *sql.DB
	hold *flock.Flock
}

// File is a file that belongs to a history, by its path from the data folder, with slashes, and its size.
type File struct {
	Name string
	Size int64
}

// TakeSnapshot writes the history of a data folder, which a server may be using, into a new file. A server that is started
// with it takes it for what a killed one has left: what ran then is told as ended. It fails with a *fault.Error of kind
// NotFound when there is no history, and of kind Unavailable, with a hint, when it cannot be read or the file not written.
func TakeSnapshot(ctx context.Context, folder, file string) (*Snapshot, error) {
	if err := Exists(folder); err != nil {
		return nil, err
	}
	hold := folderLock(folder)
	if err := hold.RLock(); err != nil { // before the snapshot, so that all that it names is still there
		return nil, explain("the data folder could not be locked", err)
	}
	err := copyDatabase(ctx, filepath.Join(folder, FileName), file)
	if err == nil {
		err = settle(ctx, file)
	}
	var db *sql.DB
	if err == nil {
		db, err = connect(file, 1, []string{"query_only(1)"}, "deferred")
	}
	if err != nil {
		_ = hold.Close()
		return nil, explainCopy(err)
	}
	return &Snapshot{db: db, hold: hold}, nil
}

// Exists returns an error of kind NotFound where there is no history in a data folder.
func Exists(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, FileName)); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "there is no history in %s", folder).WithHint("name the server's data folder with --data-dir")
	}
	return nil
}

// explainCopy is explain for a copy: where there is no room for it, nothing in memory waits to be written.
func explainCopy(err error) error {
	if p := problemOf(err); p != nil && p.hint == hintSpace {
		return fault.New(fault.Unavailable, "the history could not be copied: the disk to which it goes is full (%w)", err).
			WithHint("free some space there, or choose another place for the copy")
	}
	return explain("the history could not be copied", err)
}

// copyDatabase writes a database as it is now into a new file. Others can write to it meanwhile.
func copyDatabase(ctx context.Context, from, to string) (err error) {
	db, err := connect(from, 1, []string{"busy_timeout(5000)"}, "deferred")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	version, err := schemaVersion(ctx, db)
	switch {
	case err != nil:
		return err
	case version > len(migrations):
		return newerError(version, len(migrations))
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // SQLite would make it readable for everybody
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return err
}

// settle takes out of a copy what is true of its source only: who works on a session, and which kernels run. A server must
// not take up, or end, the kernels of another one.
func settle(ctx context.Context, file string) (err error) {
	db, err := connect(file, 1, []string{"journal_mode(delete)"}, "immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "UPDATE sessions SET holder = '' WHERE holder <> ''"); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "DELETE FROM audit_heads"); err != nil { // the log is not copied
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE generations SET ended = ?, why = 'it ran when a backup was made' WHERE ended IS NULL",
		time.Now().UnixNano())
	return err
}

// Usage counts what is in the snapshot.
func (s *Snapshot) Usage(ctx context.Context) (sessions.Usage, error) { return usage(ctx, s.db) }

// Files yields the files that the snapshot names.
func (s *Snapshot) Files(ctx context.Context) iter.Seq2[File, error] {
	const query = "SELECT blob, MAX(size) FROM outputs WHERE blob > ? GROUP BY blob ORDER BY blob LIMIT ?"
	return func(yield func(File, error) bool) {
		for last, more := "", true; more; {
			page, err := collect(ctx, s.db, func(row scanner) (f File, err error) {
				err = row.Scan(&f.Name, &f.Size)
				return f, err
			}, query, last, pageRows)
			if err != nil {
				yield(File{}, err)
				return
			}
			for _, f := range page {
				if last = f.Name; !blobFile.MatchString(last) {
					continue // damaged, and no file's name
				}
				f.Name = path.Join("blobs", last[:2], last[2:4], last)
				if !yield(f, nil) {
					return
				}
			}
			more = len(page) == pageRows
		}
	}
}

// Close ends the hold on the data folder's files. The database file stays.
func (s *Snapshot) Close() error { return errors.Join(s.db.Close(), s.hold.Close()) }
