package history

import (
	"context"
	"fmt"
)

// What is committed stands in a log beside the database (SQLite's WAL) until a checkpoint puts it into the database, for which the disk
// is waited for. By itself SQLite makes one in the commit that brings the log to 1,000 pages: one call in some 140 then takes several
// milliseconds longer, on a slow disk a good deal more. Here it is made before that, when those who have committed have their answers.
const (
	// checkpointAfter is how many transactions a checkpoint is made for. A cell's is some seven pages.
	checkpointAfter = 64
	// patience is how long SQLite waits for others who use the database, emptyPatience how long for readers until the log can be
	// emptied, in milliseconds: commits wait with it.
	patience, emptyPatience = 5000, 100
)

// empty has the log emptied, in which what was deleted still stands as it was written, and waits for that. Where somebody reads
// meanwhile, as a backup does, it is left to a later checkpoint.
func (w *writer) empty(ctx context.Context) error {
	err := w.submit(ctx, func(w *writer) error {
		w.stale, w.unmerged = true, checkpointAfter
		return nil
	})
	if err != nil {
		return err
	}
	return w.submit(ctx, func(*writer) error { return nil }) // its turn comes behind the checkpoint
}

// merge makes a checkpoint, and lets the next write. What cannot be done now is left to the next one; a disk that is in trouble is told of
// by commits.
func (w *writer) merge() {
	w.unmerged = 0
	if w.stale {
		w.setPatience(emptyPatience)
		w.stale = !w.checkpoint("TRUNCATE")
		w.setPatience(patience)
	} else {
		w.checkpoint("PASSIVE")
	}
	w.next()
}

// checkpoint makes one in one of SQLite's modes, and tells whether nobody was in its way.
func (w *writer) checkpoint(mode string) (done bool) {
	var busy, pages, merged int
	err := w.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &pages, &merged)
	return err == nil && busy == 0
}

func (w *writer) setPatience(ms int) {
	_, _ = w.conn.ExecContext(context.Background(), busyTimeout(ms)) // a connection that cannot do that commits nothing either
}

func busyTimeout(ms int) string { return fmt.Sprintf("PRAGMA busy_timeout(%d)", ms) }
