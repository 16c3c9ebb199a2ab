package history

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"cellblock/internal/fault"
)

// writer changes the database, one transaction at a time. There is no goroutine for it: who comes while nobody writes makes
// the transaction himself, and so wakes nobody; who comes meanwhile waits, and all who wait share the next one.
type writer struct {
	db    *sql.DB
	conn  *sql.Conn
	blobs blobs
	log   *slog.Logger
	files keeper // of the folder's files

	mu      sync.Mutex
	waiting []*job
	busy    bool // somebody writes
	stopped bool

	quit    chan struct{} // closed by stop
	ended   sync.WaitGroup
	trouble atomic.Pointer[error] // of the last attempt; nil while it works

	// What follows belongs to who writes.
	unmerged   int        // changes since the last checkpoint
	stale      *unemptied // nil while the log has nothing that was deleted
	statements map[string]*sql.Stmt
	freed      []string // blobs that may be named by no row any more, once this transaction is committed
	refused    []string // blobs of jobs that were undone
}

// job is some changes that are made together or not at all.
type job struct {
	do   func(w *writer) error
	done chan error // has room for the answer
}

const (
	// maxJobs bounds the jobs of one transaction, so that the first of them does not wait for all that come later.
	maxJobs = 128
	// savepoint sets a job apart from the others of its transaction.
	savepoint = "job"
)

var errClosed error = fault.New(fault.Unavailable, "the history was closed")

func newWriter(ctx context.Context, db *sql.DB, folder string, files blobs, log *slog.Logger) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{
		db: db, conn: conn, blobs: files, log: log, files: keeper{folder: folder}, quit: make(chan struct{}),
		statements: map[string]*sql.Stmt{},
	}, nil
}

// submit has changes made and waits until they are on disk. When ctx ends first they may still be made.
func (w *writer) submit(ctx context.Context, do func(*writer) error) error {
	j := &job{do: do, done: make(chan error, 1)}
	switch first := w.queue(j); {
	case first && ctx.Done() == nil:
		w.write()
	case first: // a disk that hangs must not hold up who wants to give up
		go w.write()
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// queue has a job wait, and reports whether the caller is to write.
func (w *writer) queue(j *job) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		j.done <- errClosed
		return false
	}
	w.waiting = append(w.waiting, j)
	if w.busy {
		return false
	}
	w.busy = true
	w.ended.Add(1)
	return true
}

// write makes one transaction of what waits. What has come meanwhile is left to another, so that nobody writes for ever.
func (w *writer) write() {
	w.mu.Lock()
	n := min(len(w.waiting), maxJobs)
	jobs := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	w.mu.Unlock()
	w.serve(jobs)
	if w.unmerged += n; w.unmerged >= checkpointAfter {
		go w.merge() // who has his answer does not wait for it
		return
	}
	w.next()
}

// next has another write what has come meanwhile.
func (w *writer) next() {
	if w.more() {
		go w.write()
		return
	}
	w.ended.Done()
}

// more tells whether there is more to write. If not, nobody writes any more.
func (w *writer) more() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		for _, j := range w.waiting {
			j.done <- errClosed
		}
		w.waiting = nil
	}
	w.busy = len(w.waiting) > 0
	return w.busy
}

// serve makes the changes of some jobs and answers them once they are on disk.
func (w *writer) serve(jobs []*job) {
	answers, err := w.transact(jobs)
	w.note(err)
	for i, j := range jobs {
		answer := err
		if err == nil {
			answer = answers[i]
		}
		j.done <- explain("the history could not be written", answer)
	}
	w.reclaim()
}

// transact runs jobs in one transaction and commits it. An error means that nothing was done at all; the others are the
// jobs' own.
func (w *writer) transact(jobs []*job) (answers []error, err error) {
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	if len(jobs) == 1 {
		return w.alone(jobs[0])
	}
	for _, j := range jobs {
		answer, err := w.attempt(j)
		if err != nil {
			w.rollback()
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, w.commit()
}

// alone runs the only job of a transaction, which is undone with it and needs no savepoint.
func (w *writer) alone(j *job) (answers []error, err error) {
	answer := j.do(w)
	switch {
	case answer == nil:
		return []error{nil}, w.commit()
	case temporary(explain("", answer)):
		err = answer
	}
	w.rollback()
	return []error{answer}, err
}

// commit ends a transaction; the error means that nothing of it was done.
func (w *writer) commit() error {
	err := w.exec("COMMIT")
	if err != nil {
		w.rollback()
	}
	return err
}

// attempt runs one job. What it got wrong itself undoes this job and is its answer; trouble with the disk or the database
// undoes all of the transaction.
func (w *writer) attempt(j *job) (answer, err error) {
	if err := w.exec("SAVEPOINT " + savepoint); err != nil {
		return nil, err
	}
	freed := len(w.freed)
	answer = j.do(w)
	if answer != nil {
		if temporary(explain("", answer)) {
			return nil, answer
		}
		w.freed = w.freed[:freed]
		if err := w.exec("ROLLBACK TO " + savepoint); err != nil {
			return nil, errors.Join(answer, err)
		}
	}
	return answer, w.exec("RELEASE " + savepoint)
}

// rollback ends a transaction that failed. SQLite has often done so by itself, and then says that there is none.
func (w *writer) rollback() {
	w.freed = nil
	_ = w.exec("ROLLBACK")
}

// note remembers how the last attempt went, and tells the operator when that changes.
func (w *writer) note(err error) {
	was := w.health()
	if err == nil {
		w.trouble.Store(nil)
		if was != nil {
			w.log.Info("history is being saved again")
		}
		return
	}
	err = explain("history is not being saved", err)
	w.trouble.Store(&err)
	if was == nil {
		w.log.Error(err.Error(), "hint", fault.Hint(err))
	}
}

func (w *writer) health() error {
	if err := w.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// reclaim deletes the files that no row names any more. It holds the database's lock meanwhile: whoever wants to name one
// of them, in this process or another, finds out under the same lock that it is gone, and writes it again.
func (w *writer) reclaim() {
	freed := append(w.freed, w.refused...)
	w.freed, w.refused = nil, nil
	if len(freed) == 0 {
		return
	}
	unlock, ok := w.files.mayRemove()
	if !ok {
		return
	}
	defer unlock()
	_, err := w.transact([]*job{{do: func(w *writer) error {
		for _, name := range freed {
			if err := w.removeUnnamed(name); err != nil {
				return err
			}
		}
		return nil
	}}})
	if err != nil {
		w.files.left.Store(true)
		w.log.Warn("files of deleted outputs are left in the data folder; they are looked for again later", "error", err)
	}
}

const selectNamed = "SELECT EXISTS (SELECT 1 FROM outputs WHERE blob = ?)"

func (w *writer) removeUnnamed(name string) error {
	var named bool
	err := w.row(selectNamed, name).Scan(&named)
	if err != nil || named {
		return err
	}
	return w.blobs.remove(name)
}

// exec runs a statement that is prepared once.
func (w *writer) exec(query string, args ...any) error {
	_, err := w.changed(query, args...)
	return err
}

// changed is exec that returns how many rows there were to change.
func (w *writer) changed(query string, args ...any) (int64, error) {
	result, err := w.run(query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insertRow is exec that returns the id of the row that it adds.
func (w *writer) insertRow(query string, args ...any) (id int64, err error) {
	result, err := w.run(query, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (w *writer) run(query string, args ...any) (sql.Result, error) {
	stmt, err := w.prepare(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), args...)
}

// row runs a query for one row.
func (w *writer) row(query string, args ...any) scanner {
	stmt, err := w.prepare(query)
	if err != nil {
		return failed{err}
	}
	return stmt.QueryRowContext(context.Background(), args...)
}

type scanner interface{ Scan(...any) error }

type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

func (w *writer) prepare(query string) (*sql.Stmt, error) {
	if stmt := w.statements[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(context.Background(), query)
	if err == nil {
		w.statements[query] = stmt
	}
	return stmt, err
}

// stop ends with the transaction that is being made. What waits behind it is refused.
func (w *writer) stop() {
	w.mu.Lock()
	if !w.stopped {
		w.stopped = true
		close(w.quit)
	}
	w.mu.Unlock()
	w.ended.Wait()
	w.stale.stop()
}

// close gives back the claims of a holder and closes the connection. The writer must have been stopped.
func (w *writer) close(holder string) error {
	err := w.exec("UPDATE sessions SET holder = '' WHERE holder = ?", holder)
	if w.health() != nil {
		err = nil // it is known; and a claim of a process that has ended counts for nothing
	}
	for _, stmt := range w.statements {
		err = errors.Join(err, stmt.Close())
	}
	return errors.Join(err, w.conn.Close(), w.db.Close())
}
