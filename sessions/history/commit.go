package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"cellblock/internal/fault"
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
		found.Ref, found.Created = newRef(), want.Created.UTC()
		return found, w.exec(`INSERT INTO sessions (id, issuer, subject, name, language, profile, image, created, used, holder)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, found.Ref, want.Owner.Issuer, want.Owner.Subject, want.ID, want.Language,
			want.Profile, want.Image, nanos(want.Created), nanos(time.Now()), s.holder)
	}
	if err != nil {
		return found, err
	}
	if s.heldElsewhere(holder) {
		return found, s.heldError(want.ID, holder)
	}
	found.Held = holder == s.holder
	return found, w.exec("UPDATE sessions SET holder = ?, language = ?, profile = ?, image = ?, closed = NULL, why = '' WHERE id = ?",
		s.holder, want.Language, want.Profile, want.Image, found.Ref)
}

// newRef draws a name for a session. Counted ones would be used again when the last session is deleted, and whoever still
// deletes that, or writes to it, would do so to the next.
func newRef() sessions.SessionRef { return sessions.SessionRef(rand.Int64N(math.MaxInt64) + 1) }

// heldError says of a session that another process has it, and where that one is reached, if that is known.
func (s *Store) heldError(id, holder string) error {
	err := fault.New(fault.Conflict, "session %q is in use by another cellblock process on the same data folder", id)
	if slot, _, _ := strings.Cut(holder, "/"); s.address != nil {
		if at := s.address(slot); at != "" {
			err.Message += ", the server at " + at
			return err.WithHint("use another session_id, or the server at %s, where it runs", at)
		}
	}
	return err.WithHint("use another session_id, or close it where it runs")
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
		err := c.applyAll(prepared)
		if err != nil && !temporary(explain("", err)) { // else it is tried again, and wants its files
			w.refused = append(w.refused, blobsOf(prepared)...)
		}
		return err
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
	used                    time.Time

	added inserted // the execution that this commit has inserted last, while it has no end
}

// inserted is an execution's row that need not be asked for.
type inserted struct {
	id     int64
	number int
}

// use notes that something of the session's was in use at a time.
func (c *commit) use(at time.Time) {
	if at.After(c.used) {
		c.used = at
	}
}

func (c *commit) applyAll(changes []any) error {
	for len(changes) > 0 {
		n, err := c.together(changes)
		if n == 0 && err == nil {
			n, err = 1, c.apply(changes[0])
		}
		if err != nil {
			return err
		}
		changes = changes[n:]
	}
	return c.count()
}

// together makes the first changes of some in one statement, where they are of one execution, and returns how many it made.
// A short cell is all in one commit, and its row is then written once.
func (c *commit) together(changes []any) (n int, err error) {
	if len(changes) < 2 {
		return 0, nil
	}
	switch first := changes[0].(type) {
	case sessions.ExecutionQueued:
		began, ok := changes[1].(sessions.ExecutionBegan)
		if !ok || began.Number != first.Number {
			return 0, nil
		}
		if outputs, end, n := restOf(first.Number, changes[2:]); n > 0 {
			return 2 + n, c.whole(first, began, outputs, end)
		}
		return 2, c.queued(first, began)
	case preparedOutputs:
		if end, ok := changes[1].(preparedEnd); ok && end.Number == first.Number {
			c.use(end.Ended)
			err := c.outputs(first, &end)
			c.added = inserted{}
			return 2, err
		}
	}
	return 0, nil
}

// restOf returns all outputs and the end of an execution where changes begin with them, and how many changes that are. Of one
// that has lost outputs it returns none: its rows are not all that counts.
func restOf(number int, changes []any) (outputs preparedOutputs, end preparedEnd, n int) {
	if len(changes) > 0 {
		if first, ok := changes[0].(preparedOutputs); ok && first.Number == number && first.First == 0 && first.Hole == nil {
			outputs, n, changes = first, 1, changes[1:]
		}
	}
	if len(changes) > 0 {
		if last, ok := changes[0].(preparedEnd); ok && last.Number == number {
			return outputs, last, n + 1
		}
	}
	return outputs, end, 0
}

// whole adds an execution that has ended, with its outputs.
func (c *commit) whole(q sessions.ExecutionQueued, began sessions.ExecutionBegan, outputs preparedOutputs, end preparedEnd) error {
	c.executions = max(c.executions, q.Number)
	c.use(q.Queued)
	c.use(began.Started)
	c.use(end.Ended)
	size := outputs.size()
	id, err := c.insertRow(`INSERT INTO executions (session, number, msg_id, code, file, args, caller, timeout, restores, queued, generation, started, preamble,
		ended, status, error, result, own, outputs, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.session, q.Number, q.MsgID, q.Code, q.File, q.Args, q.Caller, int64(q.Timeout), q.Restores, nanos(q.Queued), began.Generation, nanos(began.Started), began.Preamble,
		nanos(end.Ended), end.status, end.summary, end.result, end.Own, len(outputs.rows), size)
	if err != nil || len(outputs.rows) == 0 {
		return err
	}
	_, seq, err := c.insert(id, outputs.rows)
	if err != nil {
		return err
	}
	c.bytes += size
	return c.exec("UPDATE generations SET seq = ? WHERE session = ? AND number = ? AND seq < ?", seq, c.session, began.Generation, seq)
}

// queued adds an execution. If it has begun already, the row says so.
func (c *commit) queued(q sessions.ExecutionQueued, began sessions.ExecutionBegan) error {
	c.executions = max(c.executions, q.Number)
	c.use(q.Queued)
	c.use(began.Started)
	var err error
	c.added.number = q.Number
	c.added.id, err = c.insertRow(`INSERT INTO executions (session, number, msg_id, code, file, args, caller, timeout, restores, queued, generation, started, preamble)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, c.session, q.Number, q.MsgID, q.Code, q.File, q.Args, q.Caller, int64(q.Timeout), q.Restores,
		nanos(q.Queued), began.Generation, nanos(began.Started), began.Preamble)
	return err
}

func (c *commit) apply(change any) error {
	switch change := change.(type) {
	case sessions.GenerationBegan:
		return c.generationBegan(change)
	case sessions.GenerationEnded:
		return c.exec("UPDATE generations SET ended = ?, why = ? WHERE session = ? AND number = ? AND ended IS NULL",
			nanos(change.Ended), change.Why, c.session, change.Number)
	case sessions.ExecutionQueued:
		return c.queued(change, sessions.ExecutionBegan{})
	case sessions.ExecutionBegan:
		c.use(change.Started)
		return c.one("UPDATE executions SET generation = ?, started = ?, preamble = ? WHERE session = ? AND number = ?",
			change.Generation, nanos(change.Started), change.Preamble, c.session, change.Number)
	case preparedOutputs:
		c.use(time.Now())
		return c.outputs(change, nil)
	case preparedEnd:
		c.use(change.Ended)
		c.added = inserted{}
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
	c.use(g.Started)
	return c.exec("INSERT INTO generations (session, number, ref, started) VALUES (?, ?, ?, ?)",
		c.session, g.Number, string(ref), nanos(g.Started))
}

// count brings the session's own row up to date, if it is still ours: if not, nothing of this commit stays. A session
// that is closed is given back.
func (c *commit) count() error {
	n, err := c.changed(`UPDATE sessions SET used = CASE WHEN used < ? THEN ? ELSE used END, bytes = bytes + ?,
		executions = CASE WHEN executions < ? THEN ? ELSE executions END,
		generations = CASE WHEN generations < ? THEN ? ELSE generations END,
		holder = CASE WHEN closed IS NULL THEN holder ELSE '' END
		WHERE id = ? AND holder = ? AND deleted = 0`,
		nanosOrZero(c.used), nanosOrZero(c.used), c.bytes, c.executions, c.executions, c.generations, c.generations, c.session, c.holder)
	if err == nil && n != 1 {
		return fault.New(fault.Conflict, "the session was deleted, or another cellblock process has taken it over").
			WithHint("use another session_id")
	}
	return err
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
