package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/sessions"
)

// withDropped puts a notice of what was dropped of an execution into a page of its outputs, if that is where it belongs:
// in the place of the last output that went, so that whoever reads on from the middle is told too, and nobody twice.
func (s *Store) withDropped(ctx context.Context, page []outputAt, more bool, session sessions.SessionRef, number, from int) ([]outputAt, error) {
	var d sessions.Dropped
	var when sql.NullInt64
	var to, own int
	err := s.read.QueryRowContext(ctx, `SELECT dropped, dropped_outputs, dropped_bytes, dropped_to,
		CASE WHEN ended IS NULL THEN outputs ELSE own END FROM executions WHERE session = ? AND number = ?`, session, number).
		Scan(&when, &d.Outputs, &d.Bytes, &to, &own)
	if errors.Is(err, sql.ErrNoRows) || err == nil && d.Outputs == 0 {
		return page, nil
	}
	if err != nil {
		return nil, unread(err)
	}
	if own > 0 {
		to = min(to, own) // where the cell's result is read, not behind it
	}
	d.At = at(when)
	notice := outputAt{index: to - 1, out: kernels.Output{
		Kind: kernels.OutputNotice, Time: d.At, Notice: &kernels.Notice{Incomplete: droppedText(d)},
	}}
	place, _ := slices.BinarySearchFunc(page, notice.index, func(o outputAt, index int) int { return o.index - index })
	if notice.index < from || place == len(page) && more {
		return page, nil
	}
	return slices.Insert(page, place, notice), nil
}

// droppedText says what is gone and how that is avoided, in words for a model.
func droppedText(d sessions.Dropped) string {
	return fmt.Sprintf("%s of this cell, %s, dropped by retention on %s; let code write what must last into a file",
		words.Count(int64(d.Outputs), "output"), words.Bytes(d.Bytes), d.At.Format("2006-01-02"))
}
