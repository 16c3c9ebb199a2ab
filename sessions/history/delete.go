package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"cellblock/sessions"
)

const (
	// dropOutputs and dropBytes bound what is deleted in one transaction, so that nobody waits long for the database
	// meanwhile.
	dropOutputs = 500
	dropBytes   = 4 << 20
)

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
		return 0, s.heldError(id, holder)
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
	err := s.writer.submit(ctx, func(w *writer) error { return w.exec("DELETE FROM sessions WHERE id = ?", ref) })
	if err != nil {
		return err
	}
	if err := s.giveBack(ctx); err != nil {
		return err
	}
	return s.writer.empty(ctx)
}

// purgeSome deletes a session's oldest outputs, with the executions that have none left.
func purgeSome(w *writer, ref sessions.SessionRef) (more bool, err error) {
	for deleted := 0; deleted < dropOutputs; deleted++ {
		var id int64
		err := w.row("SELECT id FROM executions WHERE session = ? ORDER BY number LIMIT 1", ref).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		d, err := w.dropFirst(id)
		if err != nil || d.more {
			return d.more, err
		}
		deleted += d.outputs
		if err := w.exec("DELETE FROM executions WHERE id = ?", id); err != nil {
			return false, err
		}
	}
	return true, nil
}

// dropped is what one transaction has deleted of an execution's outputs.
type dropped struct {
	outputs int
	bytes   int64
	to      int  // the index behind the last of them
	more    bool // there are others
}

// dropFirst deletes the first outputs of an execution, as many as one transaction should.
func (w *writer) dropFirst(execution int64) (d dropped, err error) {
	if d, err = w.measure(execution); err != nil || d.outputs == 0 {
		return d, err
	}
	c := commit{writer: w}
	d.bytes, err = c.drop(execution, 0, d.to)
	return d, err
}

// measure finds out which outputs of an execution dropFirst deletes.
func (w *writer) measure(execution int64) (d dropped, err error) {
	stmt, err := w.prepare(`SELECT idx, CASE WHEN blob IS NULL THEN size ELSE 0 END FROM outputs
		WHERE execution = ? ORDER BY idx LIMIT ?`)
	if err != nil {
		return d, err
	}
	rows, err := stmt.QueryContext(context.Background(), execution, dropOutputs+1)
	if err != nil {
		return d, err
	}
	defer rows.Close()
	for size := int64(0); rows.Next(); {
		var index int
		var bytes int64
		if err := rows.Scan(&index, &bytes); err != nil {
			return d, err
		}
		if d.outputs == dropOutputs || d.outputs > 0 && size+bytes > dropBytes {
			d.more = true
			break
		}
		d.outputs, d.to, size = d.outputs+1, index+1, size+bytes
	}
	return d, rows.Err()
}

// pagesAtOnce is how much of the database file is given back in one transaction.
const pagesAtOnce = 500

// giveBack gives the disk back what is free in the database's file now, a piece at a time.
func (s *Store) giveBack(ctx context.Context) error {
	var free int
	if err := s.read.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
		return unread(err)
	}
	for ; free > 0; free -= pagesAtOnce {
		err := s.writer.submit(ctx, func(w *writer) error {
			return w.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pagesAtOnce))
		})
		if err != nil {
			return err
		}
	}
	return nil
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
