package history

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"cellblock/sessions"
)

const (
	// upkeepPause is the time between two looks at the limits.
	upkeepPause = 5 * time.Minute
	// rowsFactor is how much longer than its outputs a cell's code and status are kept.
	rowsFactor = 4
	// freshTime is how long nothing of a cell that has ended goes for lack of room: somebody reads its result.
	freshTime = time.Minute
	// leftTime is how long a session is left alone that nobody has claimed and nobody has closed: its kernel may live on
	// without a server, and be found again by the next.
	leftTime = 7 * 24 * time.Hour
	// expiredPage is how many executions are looked for at a time.
	expiredPage = 100
)

// keepUp keeps the history within its limits, from now on until Close, and removes files that could not be removed when
// their last row went.
func (s *Store) keepUp() {
	ticker := time.NewTicker(upkeepPause)
	defer ticker.Stop()
	for first := true; ; first = false {
		if err := s.retain(context.Background(), time.Now(), first); err != nil && !errors.Is(err, errClosed) {
			s.log.Warn("old history could not all be dropped; it is tried again", "error", err)
		}
		if s.writer.files.left.Swap(false) {
			s.sweep()
		}
		select {
		case <-ticker.C:
		case <-s.writer.quit:
			return
		}
	}
}

// retain drops what is beyond the limits. The first time nobody has claimed anything yet, and what could be found again is
// left alone.
func (s *Store) retain(ctx context.Context, now time.Time, first bool) error {
	var given tally
	err := errors.Join(s.expire(ctx, now, &given), s.shrink(ctx, now, &given))
	if !first {
		err = errors.Join(err, s.forget(ctx, now, &given))
	}
	if given == (tally{}) {
		return err
	}
	s.log.Info("old history was dropped", "outputs", given.outputs, "bytes", given.bytes, "cells", given.cells, "sessions", given.sessions)
	return errors.Join(err, s.giveBack(ctx))
}

// tally counts what one look at the limits has dropped.
type tally struct {
	outputs, cells, sessions int
	bytes                    int64
}

// expire drops what is too old of executions that have ended: outputs first, a good time later the rest.
func (s *Store) expire(ctx context.Context, now time.Time, given *tally) error {
	if s.maxAge <= 0 {
		return nil
	}
	if err := s.dropOutputs(ctx, now.Add(-s.maxAge), now, math.MaxInt64, given); err != nil {
		return err
	}
	return s.dropCells(ctx, now.Add(-rowsFactor*s.maxAge), math.MaxInt64, given)
}

// forget drops what is too old in sessions that nobody has claimed: outputs whose execution nobody has ended, and at last
// the sessions.
func (s *Store) forget(ctx context.Context, now time.Time, given *tally) error {
	if s.maxAge <= 0 {
		return nil
	}
	if err := s.dropAbandoned(ctx, now.Add(-max(s.maxAge, leftTime)), now, given); err != nil {
		return err
	}
	return s.dropSessions(ctx, now, given)
}

// shrink drops the oldest until the history takes no more room than it may: outputs, and when none are left, cells.
func (s *Store) shrink(ctx context.Context, now time.Time, given *tally) error {
	if s.maxBytes <= 0 {
		return nil
	}
	before := now.Add(-freshTime)
	for {
		size, err := s.size(ctx)
		if err != nil || size <= s.maxBytes {
			return err
		}
		was := *given
		if err := s.dropOutputs(ctx, before, now, size-s.maxBytes, given); err != nil {
			return err
		}
		if *given == was {
			err = s.dropCells(ctx, before, size-s.maxBytes, given)
		}
		if err != nil || *given == was {
			return err
		}
	}
}

// dropOutputs drops the outputs of executions that ended before a time, the oldest first, until they had so many bytes.
func (s *Store) dropOutputs(ctx context.Context, before, now time.Time, bytes int64, given *tally) error {
	const query = "SELECT id FROM executions WHERE ended < ? AND bytes > 0 ORDER BY ended LIMIT ?"
	return s.eachExpired(ctx, query, before, func(id int64) (enough bool, err error) {
		n, err := s.dropOutputsOf(ctx, id, now, given)
		bytes -= n
		return bytes <= 0, err
	})
}

// selectAbandoned are the executions that dropAbandoned is about.
const selectAbandoned = `SELECT e.id FROM sessions s JOIN executions e ON e.session = s.id
	WHERE s.used < ? AND s.closed IS NULL AND e.ended IS NULL AND e.bytes > 0`

// dropAbandoned drops the outputs of executions whose end nobody wrote down, in sessions that nobody has claimed and
// nothing was written for since a time.
func (s *Store) dropAbandoned(ctx context.Context, before, now time.Time, given *tally) error {
	left, err := collect(ctx, s.read, scanID, selectAbandoned, before.UnixNano())
	for _, id := range left {
		if err == nil {
			_, err = s.dropOutputsOf(ctx, id, now, given)
		}
	}
	return err
}

// dropCells deletes executions without outputs that ended before a time, the oldest first, until their code had so many
// bytes.
func (s *Store) dropCells(ctx context.Context, before time.Time, bytes int64, given *tally) error {
	const (
		query   = "SELECT id FROM executions WHERE ended < ? AND bytes = 0 ORDER BY ended LIMIT ?"
		rowSize = 500 // bytes of a row and its places in indices, about
	)
	return s.eachExpired(ctx, query, before, func(id int64) (enough bool, err error) {
		var size int64
		err = s.writer.submit(ctx, func(w *writer) error {
			if err := w.row("SELECT LENGTH(code) + LENGTH(result) FROM executions WHERE id = ?", id).Scan(&size); err != nil {
				return ignoreNone(err)
			}
			return w.exec("DELETE FROM executions WHERE id = ? AND bytes = 0", id)
		})
		bytes -= size + rowSize
		given.cells++
		return bytes <= 0, err
	})
}

// eachExpired calls drop for the executions that a query finds, a page of them at a time, until it has had enough or
// finds none. What was dropped must not be found again.
func (s *Store) eachExpired(ctx context.Context, query string, before time.Time, drop func(id int64) (enough bool, err error)) error {
	for {
		page, err := collect(ctx, s.read, scanID, query, before.UnixNano(), expiredPage)
		for _, id := range page {
			enough, err := drop(id)
			if err != nil || enough {
				return err
			}
		}
		if err != nil || len(page) < expiredPage {
			return err
		}
	}
}

func scanID(row scanner) (id int64, err error) {
	err = row.Scan(&id)
	return id, err
}

// dropOutputsOf drops all outputs of an execution, a transaction at a time, and has the execution say so.
func (s *Store) dropOutputsOf(ctx context.Context, id int64, now time.Time, given *tally) (bytes int64, err error) {
	for more := true; more && err == nil; {
		var d dropped
		err = s.writer.submit(ctx, func(w *writer) (err error) {
			if d = (dropped{}); s.running(w, id) {
				return nil
			}
			if d, err = w.dropFirst(id); err != nil {
				return err
			}
			return w.tellDropped(id, d, now)
		})
		if err == nil {
			bytes, more = bytes+d.bytes, d.more
			given.outputs, given.bytes = given.outputs+d.outputs, given.bytes+d.bytes
		}
	}
	return bytes, err
}

// running tells whether an execution has not ended and a process that is alive has its session.
func (s *Store) running(w *writer, id int64) bool {
	var holder string
	err := w.row(`SELECT s.holder FROM executions e JOIN sessions s ON s.id = e.session
		WHERE e.id = ? AND e.ended IS NULL`, id).Scan(&holder)
	return err == nil && s.held(holder)
}

// tellDropped notes in an execution, and its session, that outputs are gone.
func (w *writer) tellDropped(id int64, d dropped, now time.Time) error {
	err := w.exec("UPDATE sessions SET bytes = bytes - ? WHERE id = (SELECT session FROM executions WHERE id = ?)", d.bytes, id)
	if err != nil {
		return err
	}
	if d.outputs == 0 { // another process was here first
		return w.exec("UPDATE executions SET bytes = 0 WHERE id = ?", id)
	}
	return w.exec(`UPDATE executions SET bytes = bytes - ?, dropped = ?, dropped_outputs = dropped_outputs + ?,
		dropped_bytes = dropped_bytes + ?, dropped_to = CASE WHEN dropped_to < ? THEN ? ELSE dropped_to END WHERE id = ?`,
		d.bytes, now.UnixNano(), d.outputs, d.bytes, d.to, d.to, id)
}

// dropSessions deletes the sessions that nobody has claimed and for which nothing was written for so long that all that is
// left of them is too old.
func (s *Store) dropSessions(ctx context.Context, now time.Time, given *tally) error {
	closed := now.Add(-rowsFactor * s.maxAge).UnixNano()
	left := now.Add(-max(rowsFactor*s.maxAge, leftTime)).UnixNano()
	old, err := collect(ctx, s.read, func(row scanner) (ref sessions.SessionRef, err error) {
		err = row.Scan(&ref)
		return ref, err
	}, "SELECT id FROM sessions WHERE used < CASE WHEN closed IS NULL THEN ? ELSE ? END AND deleted = 0", left, closed)
	for _, ref := range old {
		var gone bool
		if err == nil {
			err = s.writer.submit(ctx, func(w *writer) (err error) {
				gone, err = s.hideOld(w, ref, closed)
				return err
			})
		}
		if err == nil && gone {
			given.sessions++
			err = s.purge(ctx, ref)
		}
	}
	return err
}

// hideOld marks a session as deleted if it is still old and nobody's.
func (s *Store) hideOld(w *writer, ref sessions.SessionRef, before int64) (gone bool, err error) {
	var holder string
	err = w.row("SELECT holder FROM sessions WHERE id = ? AND used < ? AND deleted = 0", ref, before).Scan(&holder)
	if err != nil || s.held(holder) {
		return false, ignoreNone(err)
	}
	return true, w.exec("UPDATE sessions SET deleted = 1, holder = '' WHERE id = ?", ref)
}

// ignoreNone takes it as no error that there is no such row any more.
func ignoreNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// size is what the history takes on the disk: what is used of the database's file, and the files beside it.
func (s *Store) size(ctx context.Context) (size int64, err error) {
	var free, pageSize, files int64
	for query, into := range map[string]*int64{
		"PRAGMA page_count": &size, "PRAGMA freelist_count": &free, "PRAGMA page_size": &pageSize,
		"SELECT COALESCE(SUM(size), 0) FROM (SELECT MAX(size) AS size FROM outputs WHERE blob IS NOT NULL GROUP BY blob)": &files,
	} {
		if err := s.read.QueryRowContext(ctx, query).Scan(into); err != nil {
			return 0, unread(err)
		}
	}
	return (size-free)*pageSize + files, nil
}
