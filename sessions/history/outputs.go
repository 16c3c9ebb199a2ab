package history

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

const (
	// pageBytes and pageRows bound what a reader of outputs gets of the database at a time. What is in files counts, too: whoever
	// reads a megabyte at a time would otherwise look up a thousand outputs for eight, again and again.
	pageBytes = 1 << 20
	pageRows  = 1000
)

// Outputs implements sessions.Store. The query of a page has ended before the first of it is yielded, so that a slow
// caller does not keep the log from being folded.
func (s *Store) Outputs(ctx context.Context, session sessions.SessionRef, number, from int) iter.Seq2[sessions.StoredOutput, error] {
	return func(yield func(sessions.StoredOutput, error) bool) {
		for {
			page, more, err := s.page(ctx, session, number, from)
			if err == nil {
				page, err = s.withDropped(ctx, page, more, session, number, from)
			}
			if err != nil {
				yield(sessions.StoredOutput{Index: from}, err)
				return
			}
			for _, row := range page {
				out, err := s.decode(row)
				if !yield(sessions.StoredOutput{Index: row.index, Output: out}, err) {
					return
				}
				from = row.index + 1
			}
			if !more {
				return
			}
		}
	}
}

// page reads the next outputs from an index on, and tells whether there may be more.
func (s *Store) page(ctx context.Context, session sessions.SessionRef, number, from int) (page []outputAt, more bool, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT o.idx, o.seq, o.kind, o.time, o.size, o.body, o.blob
		FROM executions e JOIN outputs o ON o.execution = e.id
		WHERE e.session = ? AND e.number = ? AND o.idx >= ? ORDER BY o.idx LIMIT ?`, session, number, from, pageRows)
	if err != nil {
		return nil, false, unread(err)
	}
	defer rows.Close()
	for size := int64(0); rows.Next(); {
		row, err := scanOutput(rows)
		if err != nil {
			return nil, false, unread(err)
		}
		page = append(page, row)
		if size += row.size; size >= pageBytes {
			return page, true, nil
		}
	}
	return page, len(page) == pageRows, unread(rows.Err())
}

func scanOutput(row scanner) (o outputAt, err error) {
	var seq, sent int64
	var blob sql.NullString
	err = row.Scan(&o.index, &seq, &o.out.Kind, &sent, &o.size, &o.body, &blob)
	o.out.Seq, o.out.Time, o.blob = uint64(seq), outputTime(sent), blob.String
	return o, err
}

// FindOutputs implements sessions.Store. The rows that are found are in memory before the first is yielded, without the bodies that
// are in files.
func (s *Store) FindOutputs(ctx context.Context, session sessions.SessionRef, q sessions.OutputQuery) iter.Seq2[sessions.FoundOutput, error] {
	return func(yield func(sessions.FoundOutput, error) bool) {
		type place struct {
			number int
			outputAt
		}
		found, err := collect(ctx, s.read, func(row scanner) (p place, err error) {
			var seq, sent int64
			var blob sql.NullString
			err = row.Scan(&p.number, &p.index, &seq, &p.out.Kind, &sent, &p.body, &blob)
			p.out.Seq, p.out.Time, p.blob = uint64(seq), outputTime(sent), blob.String
			return p, err
		}, `SELECT e.number, o.idx, o.seq, o.kind, o.time, o.body, o.blob FROM executions e JOIN outputs o ON o.execution = e.id
			WHERE e.session = ? AND e.number BETWEEN ? AND ? AND ? IN ('', o.kind) AND o.size >= ? ORDER BY e.number DESC, o.idx DESC LIMIT ?`,
			session, q.From, q.To, string(q.Kind), q.Size, max(q.Limit, 0))
		if err != nil {
			yield(sessions.FoundOutput{}, err)
			return
		}
		for _, p := range found {
			out, err := s.decode(p.outputAt)
			if !yield(sessions.FoundOutput{Number: p.number, StoredOutput: sessions.StoredOutput{Index: p.index, Output: out}}, err) {
				return
			}
		}
	}
}

// decode gets an output's body, from its file if it has one.
func (s *Store) decode(row outputAt) (kernels.Output, error) {
	if row.out.Notice != nil {
		return row.out, nil
	}
	if row.blob != "" {
		var err error
		if row.body, err = s.blobs.get(row.blob); err != nil {
			return kernels.Output{}, err
		}
	}
	if err := decodeBody(&row.out, row.body); err != nil {
		kind := fault.New(fault.Unavailable, "an output in the history cannot be read: %w", err)
		if errors.Is(err, errBody) {
			kind.Hint = "a newer cellblock may have written it; if not, restore cellblock.db from a backup"
		}
		return kernels.Output{}, kind
	}
	return row.out, nil
}

// outputAt is an output as it stands in the database: its body may be in a file.
type outputAt struct {
	index int
	size  int64
	out   kernels.Output
	body  []byte
	blob  string
}
