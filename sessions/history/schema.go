package history

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	"cellblock/internal/fault"
)

// migrations make a database of version n+1 of one of version n. One that has been released is never changed: what is
// different now is a new one at the end.
//
// Times are nanoseconds since 1970, NULL for what has not happened. A deleted session keeps its row, out of sight, until
// what belongs to it is gone. The counts of a session are kept with it, because lists of sessions ask for them.
var migrations = []string{
	`CREATE TABLE sessions (
		id        INTEGER PRIMARY KEY,
		issuer    TEXT    NOT NULL,
		subject   TEXT    NOT NULL,
		name      TEXT    NOT NULL,
		workspace TEXT    NOT NULL DEFAULT '',
		language  TEXT    NOT NULL,
		created   BIGINT  NOT NULL,
		used      BIGINT  NOT NULL,
		closed    BIGINT,
		why       TEXT    NOT NULL DEFAULT '',
		holder    TEXT    NOT NULL DEFAULT '',
		deleted   INTEGER NOT NULL DEFAULT 0,
		generations INTEGER NOT NULL DEFAULT 0,
		executions  INTEGER NOT NULL DEFAULT 0,
		bytes       BIGINT  NOT NULL DEFAULT 0
	);
	CREATE UNIQUE INDEX sessions_name ON sessions (issuer, subject, name) WHERE deleted = 0;

	CREATE TABLE generations (
		session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
		number  INTEGER NOT NULL,
		ref     TEXT    NOT NULL,
		seq     BIGINT  NOT NULL DEFAULT 0,
		started BIGINT  NOT NULL,
		ended   BIGINT,
		why     TEXT    NOT NULL DEFAULT '',
		PRIMARY KEY (session, number)
	);

	CREATE TABLE executions (
		id         INTEGER PRIMARY KEY,
		session    INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
		number     INTEGER NOT NULL,
		generation INTEGER NOT NULL DEFAULT 0,
		msg_id     TEXT    NOT NULL,
		code       TEXT    NOT NULL,
		caller     TEXT    NOT NULL DEFAULT '',
		timeout    BIGINT  NOT NULL,
		preamble   TEXT    NOT NULL DEFAULT '',
		queued     BIGINT  NOT NULL,
		started    BIGINT,
		ended      BIGINT,
		status     TEXT    NOT NULL DEFAULT '',
		error      TEXT    NOT NULL DEFAULT '',
		result     TEXT    NOT NULL DEFAULT '',
		outputs    INTEGER NOT NULL DEFAULT 0,
		own        INTEGER NOT NULL DEFAULT 0,
		bytes      BIGINT  NOT NULL DEFAULT 0,
		UNIQUE (session, number)
	);

	CREATE TABLE outputs (
		execution INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
		idx       INTEGER NOT NULL,
		seq       BIGINT  NOT NULL,
		kind      TEXT    NOT NULL,
		time      BIGINT  NOT NULL,
		size      BIGINT  NOT NULL,
		body      BLOB,
		blob      TEXT,
		PRIMARY KEY (execution, idx)
	);
	CREATE INDEX outputs_blob ON outputs (blob) WHERE blob IS NOT NULL;`,
	`ALTER TABLE executions ADD COLUMN restores INTEGER NOT NULL DEFAULT 0;`,
	// What retention has dropped of an execution: when, how much, and up to which index.
	`ALTER TABLE executions ADD COLUMN dropped BIGINT;
	ALTER TABLE executions ADD COLUMN dropped_outputs INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE executions ADD COLUMN dropped_bytes BIGINT NOT NULL DEFAULT 0;
	ALTER TABLE executions ADD COLUMN dropped_to INTEGER NOT NULL DEFAULT 0;
	CREATE INDEX executions_ended ON executions (ended, bytes) WHERE ended IS NOT NULL;
	DROP INDEX outputs_blob;
	CREATE INDEX outputs_blob ON outputs (blob, size) WHERE blob IS NOT NULL;`,
	// How far each audit log of the installation has been written, sealed by that.
	`CREATE TABLE audit_heads (log TEXT PRIMARY KEY, head TEXT NOT NULL);`,
	// What a session's first call chose.
	`ALTER TABLE sessions ADD COLUMN profile TEXT NOT NULL DEFAULT '';
	ALTER TABLE sessions ADD COLUMN image TEXT NOT NULL DEFAULT '';`,
	// The few executions that have not ended, of very many: whoever takes up a session asks for them, and retention does. Those
	// that are written once, when they have ended, are never in it.
	`CREATE INDEX executions_open ON executions (session, number) WHERE ended IS NULL;`,
	// The script that a cell's code runs.
	`ALTER TABLE executions ADD COLUMN file TEXT NOT NULL DEFAULT '';`,
	// What a list of an owner's sessions asks for: the few that are not closed, and how many others there are, with the last of them;
	// that alone, without a look at their rows.
	`CREATE INDEX sessions_open ON sessions (issuer, subject) WHERE closed IS NULL AND deleted = 0;
	CREATE INDEX sessions_closed ON sessions (issuer, subject, used DESC, name, profile, executions, closed, deleted) WHERE closed IS NOT NULL AND deleted = 0;`,
	// What that script was given.
	`ALTER TABLE executions ADD COLUMN args TEXT NOT NULL DEFAULT '';`,
}

// auditHeadsVersion is the first version that has the table audit_heads.
const auditHeadsVersion = 4

// migrate brings the database to this program's version, in one transaction, and returns which it was; 0 for a new one.
func migrate(ctx context.Context, db *sql.DB, steps []string) (was int, err error) {
	if version, err := schemaVersion(ctx, db); err == nil && version == len(steps) {
		return version, nil // the common case takes no lock and needs no space
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)"); err != nil {
		return 0, err
	}
	if was, err = schemaVersion(ctx, tx); err != nil {
		return 0, err
	}
	if was > len(steps) {
		return was, newerError(was, len(steps))
	}
	for _, step := range steps[was:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return was, err
		}
	}
	if err := setVersion(ctx, tx, len(steps)); err != nil {
		return was, err
	}
	return was, tx.Commit()
}

// Check tells whether Open can use what is in a folder, of which a server may run, and makes and changes nothing: nil too where there is
// no history yet. The error is Open's.
func Check(ctx context.Context, folder string) error {
	if Exists(folder) != nil {
		return nil
	}
	return explain(cannotUse, check(ctx, filepath.Join(folder, FileName)))
}

func check(ctx context.Context, path string) (err error) {
	db, err := connect(path, 1, []string{"busy_timeout(1000)", "query_only(1)"}, "deferred")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var begun bool
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'schema_version')").Scan(&begun); err != nil || !begun {
		return err
	}
	version, err := schemaVersion(ctx, db)
	if err == nil && version > len(migrations) {
		err = newerError(version, len(migrations))
	}
	return err
}

func newerError(version, known int) error {
	return fault.New(fault.Unavailable, "the history in the data folder is from a newer cellblock: it has version %d, and this "+
		"program knows %d", version, known).
		WithHint("use the newer cellblock again, or give this one its own data folder with --data-dir")
}

func setVersion(ctx context.Context, tx *sql.Tx, version int) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM schema_version"); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO schema_version (version) VALUES (?)", version)
	return err
}

// schemaVersion returns how many migrations have run.
func schemaVersion(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (version int, err error) {
	err = db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM schema_version").Scan(&version)
	return version, err
}
