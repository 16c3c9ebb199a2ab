package history

import "context"

// What is committed stands in a log beside the database (SQLite's WAL) until a checkpoint puts it into the database, for which the disk
// is waited for. By itself SQLite makes it in the commit that brings the log to 1,000 pages: one call in some 140 then takes several
// milliseconds longer, on a slow disk a good deal more. Here it is made beside the calls.
const (
	// checkpointAfter is how many transactions a checkpoint is made for. A cell's is some seven pages.
	checkpointAfter = 100
	// mostUnmerged is how large the log becomes, in pages of 4 KB, before a commit makes the checkpoint itself: one that is made while
	// others commit leaves what they add, and never ends.
	mostUnmerged = 4000
)

// fill counts a transaction.
func (w *writer) fill() {
	if w.unmerged++; w.unmerged < checkpointAfter {
		return
	}
	select {
	case w.full <- struct{}{}:
		w.unmerged = 0
	default: // the last one is still under way
	}
}

// keepMerged makes checkpoints until Close, which waits for the one that is being made.
func (s *Store) keepMerged() {
	for {
		select {
		case <-s.writer.full:
			// It waits for nobody, and what it could not do is left to the next. A disk that is in trouble is told of by commits.
			_, _ = s.read.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)")
		case <-s.writer.quit:
			return
		}
	}
}
