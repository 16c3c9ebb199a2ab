package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"cellblock/internal/fault"
)

const (
	// maxQueue is how many entries wait to be written, maxKept how many are kept while they cannot be.
	maxQueue = 4096
	maxKept  = 4096
	// maxHeld bounds what either take in memory, in bytes: with their code, lines of cells may have a megabyte each.
	maxHeld = 32 << 20
	// batch is how many are written at once.
	batch = 256
	// rest is how long the writer rests after it has written. A write costs the same for one line as for many, and a call
	// makes two; a line that somebody waits for is written at once.
	rest = 20 * time.Millisecond
	// DefaultMaxBytes is how large a file of the log becomes.
	DefaultMaxBytes = 64 << 20
)

// Options say where the log is and how it is written.
type Options struct {
	// Path is the file that is written. Full ones lie beside it, named after the number of their first line.
	Path string
	// Key seals the lines; see Key.
	Key []byte
	// MaxBytes is how large a file becomes before a new one is begun. 0: DefaultMaxBytes.
	MaxBytes int64
	// Required makes Require wait until its entry is on the disk; without, it waits for nothing and always succeeds.
	Required bool
	// Code keeps the code of cells in the log, and not only its digest.
	Code bool
	// Copies keeps a copy of the head, under CopyName. Nil: that log and head were put back together is not seen.
	Copies   Copies
	CopyName string
	// Logger gets what is wrong with the log. Nil: slog.Default.
	Logger *slog.Logger
}

// Log is an audit log that is open for writing. Its methods may be called concurrently; those of a nil Log do nothing.
type Log struct {
	Options
	file   *file
	wake   chan struct{} // holds one while something waits to be written
	urgent chan struct{} // holds one while somebody waits for it
	stop   chan struct{} // closed by Close
	ended  chan struct{}
	moved  chan struct{} // holds one while the copy of the head is older than the head
	copied chan struct{} // closed when that is copied no more

	mu      sync.Mutex
	head    head // that was written last
	waiting []item
	held    int // what waiting takes, in bytes
	closed  bool
	lost    uint64 // since the last line that told of it
	err     error  // of the last attempt to write
}

// item is what is to be written. Who waits for it gets told.
type item struct {
	entry Entry
	told  chan error // nil: nobody waits
}

// Open begins to write a log; Close must be called. The error says why the log cannot be written at all: where it is
// required, that is a reason not to start.
func Open(o Options) (*Log, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "audit: %w", err)
	}
	o.Path = path
	l := &Log{
		Options: o, wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}), moved: make(chan struct{}, 1), copied: make(chan struct{}),
		file: &file{names: names{path}, key: o.Key, max: o.MaxBytes, durable: o.Required, patience: lockPatience},
	}
	l.recall()
	if err := l.file.write(nil); err != nil {
		if o.Required {
			return nil, unwritable(err)
		}
		l.failed(err)
	}
	go l.run()
	go l.copyHeads()
	return l, nil
}

func unwritable(err error) error {
	return fault.New(fault.Unavailable, "the audit log cannot be written, and nothing is done without it: %w", err).
		WithHint("The operator must make room for it, or let the server's user write it.")
}

// Append has an entry written soon, and does not wait for that: what is told in the last moment before the process is killed
// can be lost.
func (l *Log) Append(e Entry) {
	if l == nil {
		return
	}
	l.put(item{entry: l.stamped(e)})
}

// Require has an entry written, and returns when it is on the disk. Its error means that what the entry tells of must not
// be done. Where the log is not required it is Append.
func (l *Log) Require(ctx context.Context, e Entry) error {
	if l == nil || !l.Required {
		l.Append(e)
		return nil
	}
	it := item{entry: l.stamped(e), told: make(chan error, 1)}
	if !l.put(it) {
		return unwritable(errors.New("too much waits to be written to it"))
	}
	select {
	case err := <-it.told:
		if err != nil { // of which the operator is told, by the server's log and Health: it names folders of this machine
			return unwritable(errors.New("the operator is told why"))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Log) stamped(e Entry) Entry {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	if !l.Code {
		e.Code = ""
	}
	return e.bounded()
}

// put queues an item, if there is room.
func (l *Log) put(it item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return false
	case len(l.waiting) == maxQueue || l.held+it.entry.weight() > maxHeld:
		if it.told == nil {
			l.lost++
		}
		return false
	}
	l.waiting = append(l.waiting, it)
	l.held += it.entry.weight()
	signal(l.wake)
	if it.told != nil {
		signal(l.urgent)
	}
	return true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Health returns nil while the log is written, else why it is not.
func (l *Log) Health() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return fault.New(fault.Unavailable, "the audit log cannot be written: %w", l.err).
		WithHint("Make room for %s, or let the server's user write it.", l.Path)
}

// Close writes what waits and ends the log. The error says that some of it could not be written.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	<-l.ended
	<-l.copied
	return l.Health()
}

// run writes until the log is closed. What cannot be written is tried again with what comes next.
func (l *Log) run() {
	defer close(l.ended)
	var kept []Entry
	for open := true; open; open = l.pause() {
		select {
		case <-l.wake:
			if items := l.take(); len(items) > 0 {
				kept = l.write(kept, items)
			}
		case <-l.stop:
		}
	}
	for items := l.take(); len(items) > 0; items = l.take() {
		kept = l.write(kept, items)
	}
	if len(kept) > 0 || l.losses() > 0 {
		if kept = l.write(kept, nil); len(kept) > 0 {
			l.Logger.Error("lines of the audit log are lost", "lines", len(kept))
		}
	}
}

// pause rests until somebody waits for a line, and reports whether the log is still open.
func (l *Log) pause() (open bool) {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.urgent:
		return true
	case <-l.stop:
		return false
	}
}

// take takes what waits, as much as is written at once.
func (l *Log) take() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.urgent:
	default:
	}
	if len(l.waiting) <= batch {
		items := l.waiting
		l.waiting, l.held = nil, 0
		return items
	}
	items := slices.Clone(l.waiting[:batch])
	for _, it := range items {
		l.held -= it.entry.weight()
	}
	l.waiting = slices.Delete(l.waiting, 0, batch)
	signal(l.wake)
	signal(l.urgent) // there is no time to rest
	return items
}

// write writes what was kept and what is new, tells who waits, and returns what is to be tried again: not what somebody
// waited for, because that was not done.
func (l *Log) write(kept []Entry, items []item) []Entry {
	lost := l.losses()
	entries := kept
	if lost > 0 {
		entries = append(entries, Entry{Time: time.Now().UTC(), Event: Lost, Count: lost, Reason: "so many lines could not be written"})
	}
	for _, it := range items {
		entries = append(entries, it.entry)
	}
	err := l.file.write(entries)
	if err == nil {
		l.worked(lost)
		kept = nil
	} else {
		l.failed(err)
		kept = l.keep(kept, items)
	}
	for _, it := range items { // last: who is told may ask for the log's health
		if it.told != nil {
			it.told <- err
		}
	}
	return kept
}

// keep returns the entries to try again, as far as there is room.
func (l *Log) keep(kept []Entry, items []item) []Entry {
	held, lost := 0, uint64(0)
	for _, e := range kept {
		held += e.weight()
	}
	for _, it := range items {
		if it.told != nil {
			continue
		}
		if held += it.entry.weight(); len(kept) == maxKept || held > maxHeld {
			lost++
			held -= it.entry.weight()
			continue
		}
		kept = append(kept, it.entry)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost += lost
	return kept
}

func (l *Log) losses() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

func (l *Log) failed(err error) {
	l.mu.Lock()
	first := l.err == nil
	l.err = err
	l.mu.Unlock()
	if first {
		l.Logger.Error("the audit log cannot be written", "error", err, "hint", fault.Hint(l.Health()))
	}
}

func (l *Log) worked(told uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost -= told
	l.head = l.file.seen
	signal(l.moved)
	if l.err != nil {
		l.Logger.Info("the audit log can be written again", "lost", fmt.Sprint(told))
	}
	l.err = nil
}
