package history

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"cellblock/internal/fault"
)

// A problem is what can be wrong with a disk or a database, and what the operator does about it.
type problem struct {
	what, hint string
}

const (
	hintSpace = "free some space on the disk of the data folder, or inodes where df -i says that there are none; what is in memory is then written by itself"
	hintWrite = "make the data folder and all files in it writable for the server's user, on a disk that is not mounted read-only"
)

// problems are those that SQLite names, by its primary result code.
var problems = map[int]problem{
	sqlite3.SQLITE_FULL:     {"the disk is full", hintSpace},
	sqlite3.SQLITE_READONLY: {"the database is read-only", hintWrite},
	sqlite3.SQLITE_CANTOPEN: {"the database cannot be opened", hintWrite},
	sqlite3.SQLITE_PERM:     {"the database may not be used", hintWrite},
	sqlite3.SQLITE_AUTH:     {"the database may not be used", hintWrite},
	sqlite3.SQLITE_IOERR:    {"the disk does not read or write as it should", "look at the disk of the data folder and at the system's log"},
	sqlite3.SQLITE_BUSY: {"the database is locked by another program",
		"end the program that keeps cellblock.db locked: a backup, or an sqlite3 shell with an open transaction"},
	sqlite3.SQLITE_LOCKED: {"the database is locked by another program",
		"end the program that keeps cellblock.db locked: a backup, or an sqlite3 shell with an open transaction"},
	sqlite3.SQLITE_CORRUPT: {"the database is damaged", hintDamaged},
	sqlite3.SQLITE_NOTADB:  {"the file is no database", hintDamaged},
}

const hintDamaged = "stop the server and restore cellblock.db from a backup, or move it with cellblock.db-wal, cellblock.db-shm " +
	"and the folder blobs out of the data folder to begin a new history"

// problemOf finds out what an error means; nil when it is none of the known.
func problemOf(err error) *problem {
	var db *sqlite.Error
	if errors.As(err, &db) {
		if p, ok := problems[db.Code()&0xff]; ok {
			return &p
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return &problem{"the disk is full", hintSpace}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &problem{"the data folder cannot be written", hintWrite}
	case errors.Is(err, syscall.EIO):
		return &problem{"the disk does not read or write as it should", "look at the disk of the data folder and at the system's log"}
	}
	return nil
}

// explain makes a *fault.Error of what went wrong while doing something: "the history could not be read: …". Faults and
// ended contexts stay what they are.
func explain(doing string, err error) error {
	if err == nil || fault.KindOf(err) != fault.Internal || errors.As(err, new(*fault.Error)) {
		return err
	}
	if contradicts(err) {
		return fault.New(fault.Conflict, "%s: it contradicts what is there: %w", doing, err)
	}
	if p := problemOf(err); p != nil {
		return fault.New(fault.Unavailable, "%s: %s (%w)", doing, p.what, err).WithHint("%s", p.hint)
	}
	return fault.New(fault.Unavailable, "%s: %w", doing, err).WithHint("look at the data folder and at the server's log")
}

// contradicts tells whether an error comes from a constraint: a number that is taken, a session that is not there.
func contradicts(err error) bool {
	var db *sqlite.Error
	return errors.As(err, &db) && db.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// temporary tells whether the store itself is in trouble, rather than what it was asked to do.
func temporary(err error) bool {
	return fault.KindOf(err) == fault.Unavailable && !errors.Is(err, context.Canceled)
}
