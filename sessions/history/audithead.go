package history

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// The database keeps, for each audit log of the installation, the head that the log had a moment ago (audit.Copies). It is
// sealed there, and of no meaning here.

const selectAuditHead = "SELECT head FROM audit_heads WHERE log = ?"

// AuditHead returns what SetAuditHead was given last for a log, nil if nothing was.
func (s *Store) AuditHead(ctx context.Context, log string) ([]byte, error) {
	return auditHead(ctx, s.read, log)
}

// SetAuditHead keeps a text for a log.
func (s *Store) SetAuditHead(ctx context.Context, log string, text []byte) error {
	return s.writer.submit(ctx, func(w *writer) error {
		return w.exec("INSERT INTO audit_heads (log, head) VALUES (?, ?) ON CONFLICT (log) DO UPDATE SET head = excluded.head", log, string(text))
	})
}

func auditHead(ctx context.Context, db *sql.DB, log string) ([]byte, error) {
	var text string
	err := db.QueryRowContext(ctx, selectAuditHead, log).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return []byte(text), err
}

// ReadAuditHead is AuditHead for whoever is not the server; that may run. Its error wraps fs.ErrNotExist when there is no
// history in the folder.
func ReadAuditHead(ctx context.Context, folder, log string) (text []byte, err error) {
	path := filepath.Join(folder, FileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	db, err := connect(path, 1, []string{"busy_timeout(5000)", "query_only(1)"}, "deferred")
	if err != nil {
		return nil, explain("the history cannot be read", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if version, err := schemaVersion(ctx, db); err == nil && version < auditHeadsVersion {
		return nil, nil // no server has run since the program was renewed
	}
	text, err = auditHead(ctx, db, log)
	return text, explain("the history cannot be read", err)
}
