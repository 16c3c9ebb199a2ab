package history

import (
	"context"
	"database/sql"
	"errors"

	"cellblock/sessions"
)

// purgeOutputs bounds how many outputs go in one transaction, so that nobody waits long for the database meanwhile.
const purgeOutputs = 2000

// Delete implements sessions.Store. The session is out of sight at once; what belongs to it goes in pieces.
func (s *Store) Delete(ctx context.Context, o sessions.Owner, id string) error {
	var ref sessions.SessionRef
	err := s.writer.submit(ctx, func(w *writer) (err error) {
		ref, err = s.hide(w, o, id)
		return err
	})
	if err != nil || ref == 0 {
		return err
	}
	return s.purge(ctx, ref)
}

// hide marks a session as deleted and returns its name, 0 if there is none.
func (s *Store) hide(w *writer, o sessions.Owner, id string) (ref sessions.SessionRef, err error) {
	var holder string
	err = w.row("SELECT id, holder FROM sessions WHERE issuer = ? AND subject = ? AND name = ? AND deleted = 0",
		o.Issuer, o.Subject, id).Scan(&ref, &holder)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	case s.heldElsewhere(holder):
		return 0, heldError(id)
	}
	return ref, w.exec("UPDATE sessions SET deleted = 1, holder = '' WHERE id = ?", ref)
}

// purge removes what belongs to a hidden session, and at last its row. Other processes may do so at the same time.
func (s *Store) purge(ctx context.Context, ref sessions.SessionRef) error {
	for more := true; more; {
		err := s.writer.submit(ctx, func(w *writer) (err error) {
			more, err = purgeSome(w, ref)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.writer.submit(ctx, func(w *writer) error {
		if err := w.exec("DELETE FROM sessions WHERE id = ?", ref); err != nil {
			return err
		}
		return w.exec("PRAGMA incremental_vacuum") // gives the disk back what is free now
	})
}

// purgeSome deletes a session's oldest outputs, with the executions that have none left.
func purgeSome(w *writer, ref sessions.SessionRef) (more bool, err error) {
	for deleted := 0; deleted < purgeOutputs; {
		var id int64
		var first sql.NullInt64
		err := w.row(`SELECT e.id, (SELECT MIN(idx) FROM outputs WHERE execution = e.id) FROM executions e
			WHERE e.session = ? ORDER BY e.number LIMIT 1`, ref).Scan(&id, &first)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err == nil && first.Valid {
			c := commit{writer: w}
			_, err = c.drop(id, int(first.Int64), int(first.Int64)+purgeOutputs)
			deleted += purgeOutputs
		} else if err == nil {
			err = w.exec("DELETE FROM executions WHERE id = ?", id)
			deleted++
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// unpurged returns the sessions whose deletion a process that ended has not finished.
func (s *Store) unpurged(ctx context.Context) ([]sessions.SessionRef, error) {
	return collect(ctx, s.read, func(row scanner) (ref sessions.SessionRef, err error) {
		err = row.Scan(&ref)
		return ref, err
	}, "SELECT id FROM sessions WHERE deleted = 1")
}

func (s *Store) purgeLeft(ref sessions.SessionRef) {
	if err := s.purge(context.Background(), ref); err != nil && !errors.Is(err, errClosed) {
		s.log.Warn("a deleted session's history is not all gone; the next start goes on with it", "error", err)
	}
}
