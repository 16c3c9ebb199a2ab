package history

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"

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

// selectOutput is what scanOutput reads.
const selectOutput = `SELECT e.number, o.idx, o.seq, o.kind, o.time, o.size, o.body, o.blob
	FROM executions e JOIN outputs o ON o.execution = e.id WHERE e.session = ?`

// What outputs are looked for by: those of an execution, and those that a query asks for, behind one of them.
const (
	selectOutputs = selectOutput + " AND e.number = ? AND o.idx >= ? ORDER BY o.idx LIMIT ?"
	selectFound   = selectOutput + ` AND e.number BETWEEN ? AND ? AND (e.number < ? OR o.idx < ?) AND ? IN ('', o.kind) AND o.size >= ?
		ORDER BY e.number DESC, o.idx DESC LIMIT ?`
)

// page reads the next outputs from an index on, and tells whether there may be more.
func (s *Store) page(ctx context.Context, session sessions.SessionRef, number, from int) (page []outputAt, more bool, err error) {
	return s.outputs(ctx, pageRows, selectOutputs, session, number, from, pageRows)
}

// outputs reads a page of what a query finds, which has so many rows at most, and tells whether there may be more.
func (s *Store) outputs(ctx context.Context, rows int, query string, args ...any) (page []outputAt, more bool, err error) {
	size := int64(0)
	full := func(o outputAt) bool {
		size += o.size
		return size >= pageBytes
	}
	page, err = collectUntil(ctx, s.read, scanOutput, full, query, args...)
	return page, len(page) == rows || size >= pageBytes, err
}

func scanOutput(row scanner) (o outputAt, err error) {
	var seq, sent int64
	var blob sql.NullString
	err = row.Scan(&o.number, &o.index, &seq, &o.out.Kind, &sent, &o.size, &o.body, &blob)
	o.out.Seq, o.out.Time, o.blob = uint64(seq), outputTime(sent), blob.String
	return o, err
}

// FindOutputs implements sessions.Store, a page at a time as Outputs does.
func (s *Store) FindOutputs(ctx context.Context, session sessions.SessionRef, q sessions.OutputQuery) iter.Seq2[sessions.FoundOutput, error] {
	return func(yield func(sessions.FoundOutput, error) bool) {
		at := outputAt{number: q.To, index: math.MaxInt}
		for left, more := q.Limit, true; more && left > 0; {
			var page []outputAt
			var err error
			rows := min(left, pageRows)
			page, more, err = s.outputs(ctx, rows, selectFound, session, q.From, at.number, at.number, at.index, string(q.Kind), q.Size, rows)
			if err != nil {
				yield(sessions.FoundOutput{}, err)
				return
			}
			for _, at = range page {
				out, err := s.decode(at)
				if !yield(sessions.FoundOutput{Number: at.number, StoredOutput: sessions.StoredOutput{Index: at.index, Output: out}}, err) {
					return
				}
			}
			left -= len(page)
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
	number, index int
	size          int64
	out           kernels.Output
	body          []byte
	blob          string
}
