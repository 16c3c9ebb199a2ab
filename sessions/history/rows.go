package history

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// preparedOutputs are outputs as rows.
type preparedOutputs struct {
	sessions.OutputsKept
	rows, notices []outputRow
}

// size is what the rows' bodies hold, in bytes.
func (p preparedOutputs) size() (bytes int64) {
	for _, row := range p.rows {
		bytes += int64(len(row.body))
	}
	return bytes
}

// blobsOf returns the files that prepared changes name.
func blobsOf(prepared []any) (names []string) {
	for _, change := range prepared {
		p, _ := change.(preparedOutputs)
		for _, row := range slices.Concat(p.rows, p.notices) {
			if row.blob != "" {
				names = append(names, row.blob)
			}
		}
	}
	return names
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

// outputs adds rows to an execution, takes out those of a hole, and ends it if its end is given.
func (c *commit) outputs(p preparedOutputs, end *preparedEnd) error {
	id, running, err := c.find(p.Number)
	if errors.Is(err, sql.ErrNoRows) && end == nil && c.expired(p.Number) {
		c.freed = append(c.freed, blobsOf([]any{p})...)
		return nil
	}
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
	next := p.First + len(p.rows)
	if p.Hole != nil {
		filled, err := c.fill(id, *p.Hole, p.notices)
		if err != nil {
			return err
		}
		added += filled
		next = max(next, p.Hole.To) // what was given up counts, and may be the end
	}
	c.bytes += added
	const grow = "UPDATE executions SET bytes = bytes + ?, outputs = CASE WHEN outputs < ? THEN ? ELSE outputs END"
	if end == nil {
		err = c.exec(grow+" WHERE id = ?", added, next, next, id)
	} else {
		err = c.exec(grow+", ended = ?, status = ?, error = ?, result = ?, own = ? WHERE id = ?", added, next, next,
			nanos(end.Ended), end.status, end.summary, end.result, end.Own, id)
	}
	if err != nil || !running {
		return err
	}
	return c.exec(`UPDATE generations SET seq = ? WHERE session = ? AND seq < ? AND number =
		(SELECT generation FROM executions WHERE id = ?)`, seq, c.session, seq, id)
}

// find returns an execution's row and whether it runs.
func (c *commit) find(number int) (id int64, running bool, err error) {
	if c.added.number == number { // numbers begin at 1
		return c.added.id, true, nil
	}
	err = c.row("SELECT id, ended IS NULL FROM executions WHERE session = ? AND number = ?", c.session, number).Scan(&id, &running)
	return id, running, err
}

// expired tells whether there was an execution of that number. Retention may have deleted it while something that it left
// running still prints; what that prints is not kept either.
func (c *commit) expired(number int) bool {
	var executions int
	err := c.row("SELECT executions FROM sessions WHERE id = ?", c.session).Scan(&executions)
	return err == nil && number <= executions
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
