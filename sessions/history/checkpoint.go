package history

import (
	"context"
	"fmt"
	"time"
)

// What is committed stands in a log beside the database (SQLite's WAL) until a checkpoint puts it into the database, for which the disk
// is waited for. By itself SQLite makes one in a commit that brings the log to so many pages: that call then takes several milliseconds
// longer, on a slow disk a good deal more. Here it is made before that, when those who have committed have their answers.
const (
	// checkpointAfter is for how many changes a checkpoint is made. A cell's is some seven pages.
	checkpointAfter = 64
	// checkpointPages is from how many pages on SQLite makes one by itself all the same, so that changes which are large leave no huge log.
	checkpointPages = 4000
	// patience is how long SQLite waits for others who use the database, in milliseconds.
	patience = 5000
)

// What was deleted still stands in the log as it was written, until the log is emptied. That cannot be done while anybody reads, as a
// backup does for seconds, and nobody's commit waits for it: it is tried again, after a pause that grows from the first to the last of these.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
	// emptyPatience is how long a deletion waits for it.
	emptyPatience = 2 * time.Second
)

// unemptied is a log that has what was deleted.
type unemptied struct {
	done  chan struct{} // closed once it is emptied
	pause time.Duration // before the next attempt
	again *time.Timer   // nil before the first one has failed
}

// empty has the log emptied, and waits for that for a while.
func (w *writer) empty(ctx context.Context) error {
	var done chan struct{}
	err := w.submit(ctx, func(w *writer) error {
		if w.stale == nil {
			w.stale = &unemptied{done: make(chan struct{}), pause: firstPause}
		}
		done, w.unmerged = w.stale.done, checkpointAfter
		return nil
	})
	if err != nil {
		return err
	}
	limit := time.NewTimer(emptyPatience)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C: // what was deleted is out of everybody's sight
	case <-w.quit: // whoever opens the log next empties it
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// emptyLater does so without anybody who waits.
func (w *writer) emptyLater() {
	_ = w.submit(context.Background(), func(w *writer) error { // only a writer that has stopped refuses
		w.unmerged = checkpointAfter
		return nil
	})
}

// merge makes a checkpoint, and lets the next write. What cannot be done now is left to the next one; a disk that is in trouble is told of
// by commits.
func (w *writer) merge() {
	w.unmerged = 0
	w.stale.stop()
	switch {
	case w.stale == nil:
		w.checkpoint("PASSIVE")
	case w.truncate():
		close(w.stale.done)
		w.stale = nil
	default:
		w.stale.again = time.AfterFunc(w.stale.pause, w.emptyLater)
		w.stale.pause = min(2*w.stale.pause, lastPause)
	}
	w.next()
}

// stop ends the wait for another attempt, if there is one.
func (u *unemptied) stop() {
	if u != nil && u.again != nil {
		u.again.Stop()
	}
}

// truncate empties the log if nobody is in the way, and is a passive checkpoint otherwise.
func (w *writer) truncate() (done bool) {
	w.setPatience(0)
	defer w.setPatience(patience)
	return w.checkpoint("TRUNCATE")
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
