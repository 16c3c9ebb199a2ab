package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

const (
	sessionColumns = `id, issuer, subject, name, workspace, language, profile, image, created, used, closed, why, holder,
	generations, executions, bytes`
	selectSession = "SELECT " + sessionColumns + " FROM sessions"
	// selectWithLast goes on with the last cell, found by its number.
	selectWithLast = "SELECT s.*, COALESCE(e.code, ''), COALESCE(e.file, ''), COALESCE(e.args, ''), COALESCE(e.caller, '')" +
		" FROM (SELECT " + sessionColumns + ` FROM sessions WHERE issuer = ? AND subject = ? AND deleted = 0) s
		LEFT JOIN executions e ON e.session = s.id AND e.number = s.executions`
)

// What sessions are looked for by: the owner's one of a name, and all that are his.
const (
	selectSessionNamed  = selectSession + " WHERE issuer = ? AND subject = ? AND name = ? AND deleted = 0"
	selectSessionsOwned = selectWithLast + " ORDER BY s.used DESC, s.name"
	selectUnclosed      = selectSession + " WHERE issuer = ? AND subject = ? AND deleted = 0 AND closed IS NULL ORDER BY used DESC, name"
)

// The owner's sessions that are closed and have had a cell, without some: ids and profiles, as lists in JSON. How many there are, and
// the last used.
const (
	ofClosed = ` FROM sessions WHERE issuer = ? AND subject = ? AND deleted = 0 AND closed IS NOT NULL AND executions > 0
		AND name NOT IN (SELECT value FROM json_each(?)) AND profile NOT IN (SELECT value FROM json_each(?))`
	countClosed  = "SELECT COUNT(*)" + ofClosed
	selectClosed = "SELECT name, used" + ofClosed + " ORDER BY used DESC, name LIMIT ?"
)

func scanSession(row scanner) (s sessions.StoredSession, holder string, err error) {
	holder, err = scanInto(&s, row)
	return s, holder, err
}

// scanWithLast is scanSession for a row that goes on with the last cell.
func scanWithLast(row scanner) (s sessions.StoredSession, holder string, err error) {
	holder, err = scanInto(&s, row, &s.Last.Code, &s.Last.File, &s.Last.Args, &s.Last.Caller)
	return s, holder, err
}

// scanInto reads a session, and what its row has behind it.
func scanInto(s *sessions.StoredSession, row scanner, more ...any) (holder string, err error) {
	var created, used, closed sql.NullInt64
	err = row.Scan(append([]any{&s.Ref, &s.Owner.Issuer, &s.Owner.Subject, &s.ID, &s.Workspace, &s.Language, &s.Profile, &s.Image, &created, &used,
		&closed, &s.Why, &holder, &s.Generations, &s.Executions, &s.Bytes}, more...)...)
	s.Created, s.Used, s.Closed = at(created), at(used), at(closed)
	return holder, err
}

// Session implements sessions.Store.
func (s *Store) Session(ctx context.Context, o sessions.Owner, id string) (sessions.StoredSession, error) {
	found, holder, err := scanSession(s.read.QueryRowContext(ctx, selectSessionNamed, o.Issuer, o.Subject, id))
	if errors.Is(err, sql.ErrNoRows) {
		return found, fault.New(fault.NotFound, "there is no session %q in the history", id)
	}
	found.Held = s.held(holder)
	return found, unread(err)
}

// Sessions implements sessions.Store.
func (s *Store) Sessions(ctx context.Context, o sessions.Owner) ([]sessions.StoredSession, error) {
	return s.sessionsBy(ctx, scanWithLast, selectSessionsOwned, o)
}

// Unclosed implements sessions.Store.
func (s *Store) Unclosed(ctx context.Context, o sessions.Owner) ([]sessions.StoredSession, error) {
	return s.sessionsBy(ctx, scanSession, selectUnclosed, o)
}

func (s *Store) sessionsBy(ctx context.Context, scan func(scanner) (sessions.StoredSession, string, error), query string, o sessions.Owner) ([]sessions.StoredSession, error) {
	return collect(ctx, s.read, func(row scanner) (sessions.StoredSession, error) {
		found, holder, err := scan(row)
		found.Held = s.held(holder)
		return found, err
	}, query, o.Issuer, o.Subject)
}

// Closed implements sessions.Store.
func (s *Store) Closed(ctx context.Context, o sessions.Owner, without sessions.Exclusion, limit int) (n int, last []sessions.StoredName, err error) {
	args := []any{o.Issuer, o.Subject, listed(without.IDs), listed(without.Profiles)}
	if err := s.read.QueryRowContext(ctx, countClosed, args...).Scan(&n); err != nil {
		return 0, nil, unread(err)
	}
	last, err = collect(ctx, s.read, func(row scanner) (found sessions.StoredName, err error) {
		var used sql.NullInt64
		err = row.Scan(&found.ID, &used)
		found.Used = at(used)
		return found, err
	}, selectClosed, append(args, max(limit, 0))...)
	return n, last, err
}

// listed is a list as a query's argument.
func listed(names []string) string {
	if len(names) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(names) // strings always can be
	return string(text)
}

// Generations implements sessions.Store.
func (s *Store) Generations(ctx context.Context, session sessions.SessionRef) ([]sessions.StoredGeneration, error) {
	return collect(ctx, s.read, func(row scanner) (g sessions.StoredGeneration, err error) {
		var ref string
		var seq int64
		var started, ended sql.NullInt64
		if err := row.Scan(&g.Number, &ref, &seq, &started, &ended, &g.Why); err != nil {
			return g, err
		}
		g.Seq, g.Started, g.Ended = uint64(seq), at(started), at(ended)
		return g, json.Unmarshal([]byte(ref), &g.Ref)
	}, "SELECT number, ref, seq, started, ended, why FROM generations WHERE session = ? ORDER BY number", session)
}

const selectExecution = `SELECT number, generation, msg_id, code, file, args, caller, timeout, restores, preamble, queued, started, ended, result,
	outputs, own, bytes, dropped, dropped_outputs, dropped_bytes FROM executions WHERE session = ?`

// What executions of a session are looked for by: a page of them, and those that have not ended.
const (
	selectPage    = selectExecution + " AND number >= ? ORDER BY number LIMIT ?"
	selectUnended = selectExecution + " AND ended IS NULL ORDER BY number"
)

func scanExecution(row scanner) (e sessions.StoredExecution, err error) {
	var queued, started, ended, dropped sql.NullInt64
	var result string
	err = row.Scan(&e.Number, &e.Generation, &e.MsgID, &e.Code, &e.File, &e.Args, &e.Caller, &e.Timeout, &e.Restores, &e.Preamble, &queued,
		&started, &ended, &result, &e.Outputs, &e.Own, &e.Bytes, &dropped, &e.Dropped.Outputs, &e.Dropped.Bytes)
	if err != nil {
		return e, err
	}
	e.Queued, e.Started, e.Ended, e.Dropped.At = at(queued), at(started), at(ended), at(dropped)
	return e, readEnd(&e, result)
}

// Executions implements sessions.Store.
func (s *Store) Executions(ctx context.Context, session sessions.SessionRef, from, limit int, code int64) ([]sessions.StoredExecution, error) {
	read := int64(0)
	enough := func(e sessions.StoredExecution) bool {
		read += int64(len(e.Code))
		return code > 0 && read >= code
	}
	return collectUntil(ctx, s.read, scanExecution, enough, selectPage, session, from, max(limit, 0))
}

// Unended implements sessions.Store.
func (s *Store) Unended(ctx context.Context, session sessions.SessionRef) ([]sessions.StoredExecution, error) {
	return collect(ctx, s.read, scanExecution, selectUnended, session)
}

// Execution implements sessions.Store.
func (s *Store) Execution(ctx context.Context, session sessions.SessionRef, number int) (sessions.StoredExecution, error) {
	e, err := scanExecution(s.read.QueryRowContext(ctx, selectExecution+" AND number = ?", session, number))
	if errors.Is(err, sql.ErrNoRows) {
		return e, fault.New(fault.NotFound, "there is no execution %d of this session in the history", number)
	}
	return e, unread(err)
}

// Usage implements sessions.Store.
func (s *Store) Usage(ctx context.Context) (sessions.Usage, error) {
	u, err := usage(ctx, s.read)
	if err == nil {
		u.Disk, err = s.size(ctx)
	}
	return u, err
}

func usage(ctx context.Context, db *sql.DB) (u sessions.Usage, err error) {
	err = db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(bytes), 0),
		(SELECT COUNT(*) FROM executions WHERE session IN (SELECT id FROM sessions WHERE deleted = 0))
		FROM sessions WHERE deleted = 0`).Scan(&u.Sessions, &u.Bytes, &u.Executions)
	return u, unread(err)
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, db *sql.DB, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	return collectUntil(ctx, db, scan, func(T) bool { return false }, query, args...)
}

// collectUntil reads the rows of a query up to one with which there are enough.
func collectUntil[T any](ctx context.Context, db *sql.DB, scan func(scanner) (T, error), enough func(T) bool, query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, unread(err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, unread(err)
		}
		if all = append(all, one); enough(one) {
			return all, nil
		}
	}
	return all, unread(rows.Err())
}

func unread(err error) error { return explain("the history could not be read", err) }

// at is a time as it was stored.
func at(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.Unix(0, n.Int64).UTC()
}

// outputTime is the time of an output, for which 0 means none.
func outputTime(n int64) time.Time { return at(sql.NullInt64{Int64: n, Valid: n != 0}) }
