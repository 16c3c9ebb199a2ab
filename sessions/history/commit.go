package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// Open implements sessions.Store.
func (s *Store) Open(ctx context.Context, want sessions.StoredSession) (found sessions.StoredSession, err error) {
	err = s.writer.submit(ctx, func(w *writer) error {
		found, err = s.claim(w, want)
		return err
	})
	return found, err
}

func (s *Store) claim(w *writer, want sessions.StoredSession) (sessions.StoredSession, error) {
	found, holder, err := scanSession(w.row(selectSession+" WHERE issuer = ? AND subject = ? AND name = ? AND deleted = 0",
		want.Owner.Issuer, want.Owner.Subject, want.ID))
	if errors.Is(err, sql.ErrNoRows) {
		found = want
		found.Ref, found.Created = 0, want.Created.UTC()
		return found, w.row(`INSERT INTO sessions (issuer, subject, name, language, created, used, holder)
			VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`, want.Owner.Issuer, want.Owner.Subject, want.ID, want.Language,
			nanos(want.Created), nanos(time.Now()), s.holder).Scan(&found.Ref)
	}
	if err != nil {
		return found, err
	}
	if s.heldElsewhere(holder) {
		return found, heldError(want.ID)
	}
	found.Held = holder == s.holder
	return found, w.exec("UPDATE sessions SET holder = ?, language = ?, closed = NULL, why = '' WHERE id = ?",
		s.holder, want.Language, found.Ref)
}

func heldError(id string) error {
	return fault.New(fault.Conflict, "session %q is in use by another cellblock process on the same data folder", id).
		WithHint("use another session_id, or close it where it runs")
}

// Commit implements sessions.Store.
func (s *Store) Commit(ctx context.Context, session sessions.SessionRef, changes ...sessions.Change) error {
	prepared := make([]any, len(changes))
	for i, change := range changes {
		var err error
		if prepared[i], err = s.prepare(change); err != nil {
			return err
		}
	}
	return s.writer.submit(ctx, func(w *writer) error {
		c := commit{writer: w, session: session, holder: s.holder}
		for _, change := range prepared {
			if err := c.apply(change); err != nil {
				return err
			}
		}
		return c.count()
	})
}

// prepare does what can be done before the writer's turn, so that many sessions can do it side by side.
func (s *Store) prepare(change sessions.Change) (any, error) {
	switch change := change.(type) {
	case sessions.OutputsKept:
		return s.prepareOutputs(change)
	case sessions.ExecutionEnded:
		return prepareEnd(change)
	}
	return change, nil
}

// commit is the changes of one session on their way into the database.
type commit struct {
	*writer
	session sessions.SessionRef
	holder  string

	// What the session's own row is to learn.
	bytes                   int64
	generations, executions int
}

func (c *commit) apply(change any) error {
	switch change := change.(type) {
	case sessions.GenerationBegan:
		return c.generationBegan(change)
	case sessions.GenerationEnded:
		return c.exec("UPDATE generations SET ended = ?, why = ? WHERE session = ? AND number = ? AND ended IS NULL",
			nanos(change.Ended), change.Why, c.session, change.Number)
	case sessions.ExecutionQueued:
		c.executions = max(c.executions, change.Number)
		return c.exec(`INSERT INTO executions (session, number, msg_id, code, caller, timeout, queued) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			c.session, change.Number, change.MsgID, change.Code, change.Caller, int64(change.Timeout), nanos(change.Queued))
	case sessions.ExecutionBegan:
		return c.one("UPDATE executions SET generation = ?, started = ?, preamble = ? WHERE session = ? AND number = ?",
			change.Generation, nanos(change.Started), change.Preamble, c.session, change.Number)
	case preparedOutputs:
		return c.outputs(change)
	case preparedEnd:
		return c.one(`UPDATE executions SET ended = ?, status = ?, error = ?, result = ?, own = ? WHERE session = ? AND number = ?`,
			nanos(change.Ended), change.status, change.summary, change.result, change.Own, c.session, change.Number)
	case sessions.WorkspaceGiven:
		return c.one("UPDATE sessions SET workspace = ? WHERE id = ?", change.Name, c.session)
	case sessions.SessionClosed:
		// The claim goes last, in count: what stands behind this change in the same commit is still allowed.
		return c.one("UPDATE sessions SET closed = ?, why = ? WHERE id = ?", nanos(change.Closed), change.Why, c.session)
	}
	return fmt.Errorf("history: a change of the unknown type %T", change)
}

// one runs a statement that must find its row.
func (c *commit) one(query string, args ...any) error {
	n, err := c.changed(query, args...)
	if err == nil && n != 1 {
		return fault.New(fault.Conflict, "the history has no such session or execution any more")
	}
	return err
}

func (c *commit) generationBegan(g sessions.GenerationBegan) error {
	ref, err := json.Marshal(g.Ref)
	if err != nil {
		return err
	}
	c.generations = max(c.generations, g.Number)
	return c.exec("INSERT INTO generations (session, number, ref, started) VALUES (?, ?, ?, ?)",
		c.session, g.Number, string(ref), nanos(g.Started))
}

// count brings the session's own row up to date, if it is still ours: if not, nothing of this commit stays. A session
// that is closed is given back.
func (c *commit) count() error {
	n, err := c.changed(`UPDATE sessions SET used = ?, bytes = bytes + ?,
		executions = CASE WHEN executions < ? THEN ? ELSE executions END,
		generations = CASE WHEN generations < ? THEN ? ELSE generations END,
		holder = CASE WHEN closed IS NULL THEN holder ELSE '' END
		WHERE id = ? AND holder = ? AND deleted = 0`,
		nanos(time.Now()), c.bytes, c.executions, c.executions, c.generations, c.generations, c.session, c.holder)
	if err == nil && n != 1 {
		return fault.New(fault.Conflict, "the session was deleted, or another cellblock process has taken it over").
			WithHint("use another session_id")
	}
	return err
}

// preparedOutputs are outputs as rows.
type preparedOutputs struct {
	sessions.OutputsKept
	rows, notices []outputRow
}

type outputRow struct {
	kernels.Output
	idx  int
	body []byte
	blob string // the name of the file that has the body, or empty
}

func (s *Store) prepareOutputs(change sessions.OutputsKept) (any, error) {
	p := preparedOutputs{OutputsKept: change}
	var err error
	if p.rows, err = s.rowsOf(change.First, change.Outputs); err != nil || change.Hole == nil {
		return p, err
	}
	p.notices, err = s.rowsOf(change.Hole.From, change.Hole.Notices)
	return p, err
}

func (s *Store) rowsOf(first int, outputs []kernels.Output) ([]outputRow, error) {
	rows := make([]outputRow, len(outputs))
	for i, out := range outputs {
		body, err := encodeBody(out)
		if err != nil {
			return nil, err
		}
		rows[i] = outputRow{Output: out, idx: first + i, body: body}
		if len(body) <= blobLimit {
			continue
		}
		rows[i].blob = blobName(body)
		if err := s.blobs.put(rows[i].blob, body); err != nil {
			s.writer.note(err)
			return nil, explain("the history could not be written", err)
		}
	}
	return rows, nil
}

// outputs adds rows to an execution, and takes out those of a hole.
func (c *commit) outputs(p preparedOutputs) error {
	var id int64
	var running bool
	err := c.row("SELECT id, ended IS NULL FROM executions WHERE session = ? AND number = ?", c.session, p.Number).
		Scan(&id, &running)
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.Conflict, "the history has no execution %d of this session", p.Number)
	}
	if err != nil {
		return err
	}
	added, seq, err := c.insert(id, p.rows)
	if err != nil {
		return err
	}
	if p.Hole != nil {
		filled, err := c.fill(id, *p.Hole, p.notices)
		if err != nil {
			return err
		}
		added += filled
	}
	c.bytes += added
	next := p.First + len(p.rows)
	if err := c.exec("UPDATE executions SET bytes = bytes + ?, outputs = CASE WHEN outputs < ? THEN ? ELSE outputs END WHERE id = ?",
		added, next, next, id); err != nil || !running {
		return err
	}
	return c.exec(`UPDATE generations SET seq = ? WHERE session = ? AND seq < ? AND number =
		(SELECT generation FROM executions WHERE id = ?)`, seq, c.session, seq, id)
}

// insert adds rows and returns their size and the highest number of the shim's sequence among them.
func (c *commit) insert(execution int64, rows []outputRow) (size, seq int64, err error) {
	for _, r := range rows {
		var body any = r.body
		var blob any
		if r.blob != "" {
			if body, blob = nil, r.blob; !c.blobs.has(r.blob, len(r.body)) { // reclaimed since it was written
				err = c.blobs.put(r.blob, r.body)
			}
		}
		if err == nil {
			err = c.exec("INSERT INTO outputs (execution, idx, seq, kind, time, size, body, blob) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
				execution, r.idx, int64(r.Seq), string(r.Kind), nanosOrZero(r.Time), len(r.body), body, blob)
		}
		if err != nil {
			return 0, 0, err
		}
		size += int64(len(r.body))
		seq = max(seq, int64(r.Seq))
	}
	return size, seq, nil
}

// fill takes the rows of a hole out, earlier notices among them, and puts notices in their place. It returns by how much
// the execution has grown, which is mostly less than nothing.
func (c *commit) fill(execution int64, hole sessions.Hole, notices []outputRow) (grown int64, err error) {
	freed, err := c.drop(execution, hole.From, hole.To)
	if err != nil {
		return 0, err
	}
	size, _, err := c.insert(execution, notices)
	return size - freed, err
}

// drop deletes an execution's outputs with indices from one up to another, and returns how large they were.
func (c *commit) drop(execution int64, from, to int) (size int64, err error) {
	const which = " FROM outputs WHERE execution = ? AND idx >= ? AND idx < ?"
	if err := c.row("SELECT COALESCE(SUM(size), 0)"+which, execution, from, to).Scan(&size); err != nil {
		return 0, err
	}
	if err := c.free(which, execution, from, to); err != nil {
		return 0, err
	}
	return size, c.exec("DELETE"+which, execution, from, to)
}

// free remembers the files of outputs that are about to be deleted.
func (w *writer) free(which string, args ...any) error {
	stmt, err := w.prepare("SELECT DISTINCT blob" + which + " AND blob IS NOT NULL")
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		w.freed = append(w.freed, name)
	}
	return rows.Err()
}

// nanos is a time as it is stored; NULL for none.
func nanos(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

func nanosOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
