package history

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellblock/sessions"
)

// FileName is the database's name in its folder.
const FileName = "cellblock.db"

// Options say where a store is and who uses it. Folder is required.
type Options struct {
	// Folder is the data folder. It must be on a local disk: SQLite's log does not work over a network.
	Folder string
	// Slot names this process among those that use the folder at the same time; empty when there is only one.
	Slot string
	// Alive tells whether another slot's process is alive. Nil means that every other slot's is.
	Alive func(slot string) bool
	// Address is where another slot's server is reached, "" where that is not known. Nil means that none's is.
	Address func(slot string) string
	// MaxAge is how long outputs are kept; code and status stay rowsFactor times as long. MaxBytes bounds what the history
	// takes on the disk: beyond it the oldest outputs go, and then the oldest cells. 0 is no limit.
	MaxAge   time.Duration
	MaxBytes int64
	// Logger gets what operators should know. Nil means slog.Default.
	Logger *slog.Logger
}

// Store is a sessions.Store in a folder.
type Store struct {
	read   *sql.DB
	writer *writer
	blobs  blobs
	room   room
	log    *slog.Logger

	holder string // SLOT/word
	alive  func(slot string) bool
	// address is that of a slot's server; nil: nobody's is known
	address func(slot string) string

	maxAge   time.Duration
	maxBytes int64

	tidying sync.WaitGroup // up what an earlier process has left
	keeping sync.WaitGroup // to the limits, until Close
	closed  atomic.Bool
}

var _ sessions.Store = (*Store)(nil)

// cannotUse begins what is said of a history that cannot be opened.
const cannotUse = "the history in the data folder cannot be used"

// readers is how many may read at once.
const readers = 4

// Open opens the store in a folder, and makes it or brings it to this program's version if need be. It fails with a
// *fault.Error of kind Unavailable, with a hint, when the database cannot be used, is damaged, or is from a newer program.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, explain(cannotUse, err)
	}
	return s, nil
}

func open(ctx context.Context, o Options) (*Store, error) {
	path, err := filepath.Abs(filepath.Join(o.Folder, FileName))
	if err != nil {
		return nil, err
	}
	// SQLite would make it readable for everybody; its other files take over the mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	left := logLeft(path)
	write, err := connect(path, 1, pragmas, "immediate")
	if err != nil {
		return nil, err
	}
	was, err := migrate(ctx, write, migrations)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	if was > 0 && was < len(migrations) {
		o.logger().Info("the history has a new form, which an older cellblock refuses", "was", was, "is", len(migrations))
	}
	s, err := start(ctx, o, path, write)
	if err == nil && left {
		s.tidying.Go(func() { _ = s.writer.empty(context.Background()) }) // which fails if the store is closed at once
	}
	return s, err
}

// logLeft tells whether somebody has left the database's log, in which there may be what he has deleted: a process that was killed, or one
// that still runs.
func logLeft(path string) bool {
	log, err := os.Stat(path + "-wal")
	return err == nil && log.Size() > 0
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}

func start(ctx context.Context, o Options, path string, write *sql.DB) (*Store, error) {
	read, err := connect(path, readers, []string{"busy_timeout(5000)", "query_only(1)"}, "deferred")
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	s := &Store{
		read: read, blobs: blobs{filepath.Join(o.Folder, "blobs")}, room: room{folder: o.Folder}, log: o.logger(), alive: o.Alive, address: o.Address,
		holder: o.Slot + "/" + strings.ToLower(rand.Text()[:10]), maxAge: o.MaxAge, maxBytes: o.MaxBytes,
	}
	if s.writer, err = newWriter(ctx, write, o.Folder, s.blobs, s.log); err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	left, err := s.unpurged(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, ref := range left {
		s.tidying.Go(func() { s.purgeLeft(ref) })
	}
	s.tidying.Go(s.sweep)
	s.keeping.Go(s.keepUp)
	return s, nil
}

// pragmas are how the writing connection is set up. That for auto_vacuum takes effect only in a new database, and before
// anything else is done to it: deleted history can then be given back to the disk a piece at a time. What is deleted is overwritten.
var pragmas = []string{
	fmt.Sprintf("busy_timeout(%d)", patience), "auto_vacuum(incremental)", "journal_mode(wal)", "synchronous(normal)", "foreign_keys(1)",
	"secure_delete(1)", "journal_size_limit(67108864)", fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
}

// connect opens at most n connections to the database and sees to it that one works.
func connect(path string, n int, pragmas []string, txlock string) (*sql.DB, error) {
	q := url.Values{"_pragma": pragmas, "_txlock": {txlock}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	if err := db.Ping(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// held tells whether a process that is alive has a session claimed.
func (s *Store) held(holder string) bool {
	return holder != "" && (holder == s.holder || s.heldElsewhere(holder))
}

// heldElsewhere tells whether another process has a session claimed and is alive. A holder of this process's own slot is
// an earlier process: the slot is ours now.
func (s *Store) heldElsewhere(holder string) bool {
	slot, _, _ := strings.Cut(holder, "/")
	own, _, _ := strings.Cut(s.holder, "/")
	if holder == "" || slot == own {
		return false
	}
	return s.alive == nil || s.alive(slot)
}

// Health implements sessions.Store.
func (s *Store) Health() error { return s.writer.health() }

// Close implements sessions.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.writer.stop()
	s.tidying.Wait()
	s.keeping.Wait()
	return explain("the history could not be closed", errors.Join(s.writer.close(s.holder), s.read.Close()))
}
