package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// file is the log on the disk, as a process writes it. Every write begins where the head says that the last one ended,
// whoever made that; all that is remembered from one write to the next is how far it was.
type file struct {
	names
	key      []byte
	max      int64 // of a file, in bytes
	durable  bool  // what write returns from outlives a loss of power
	patience time.Duration

	// seen is the head that was last written or, at first, that of the copy (Copies). The log never ends before it. foreign
	// tells that there was a copy that does not hold.
	seen    head
	foreign bool
}

// write appends lines for the entries, all or none, behind those that tell what was wrong with the log.
func (f *file) write(entries []Entry) (err error) {
	lock := flock.New(f.lock(), flock.SetPermissions(0o600))
	if err := locked(lock.TryLockContext, f.patience); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	h, notes, err := f.catchUp()
	if err != nil {
		return err
	}
	return f.append(h, append(notes, entries...))
}

// append writes lines, into a new file where the one that is written is full, and then the head.
func (f *file) append(h head, entries []Entry) error {
	var text []byte
	at := h.next()
	for _, e := range entries {
		var err error
		if text, at, err = appendLine(f.key, text, at, e); err != nil {
			return err
		}
	}
	if h.Size > 0 && h.Size+int64(len(text)) > f.max {
		var err error
		if h, err = f.setAside(h); err != nil {
			return err
		}
	}
	if err := f.appendText(h.Size, text); err != nil {
		return err
	}
	before := h.Size
	h.Lines, h.Last, h.Size = at.Seq-1, at.Before, h.Size+int64(len(text))
	if err := f.writeHead(f.key, h, f.durable); err != nil {
		return errors.Join(err, os.Truncate(f.log(), before)) // they will be written again
	}
	f.seen, f.foreign = h, false
	return nil
}

// appendText appends to the file, wholly or, if that can be done, not at all.
func (f *file) appendText(size int64, text []byte) (err error) {
	log, err := os.OpenFile(f.log(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	_, err = log.Write(text)
	if err == nil && f.durable {
		err = log.Sync()
	}
	if err != nil {
		return errors.Join(err, log.Truncate(size))
	}
	return nil
}

// setAside gives the file that is written its final name, and returns the head for a new one. It is renamed first: who
// finds it so knows by the head what was going on.
func (f *file) setAside(h head) (head, error) {
	full := f.full(h.First)
	if exists(full, -1) {
		return h, fmt.Errorf("%s is there already: move it away", full)
	}
	if err := os.Rename(f.log(), full); err != nil {
		return h, err
	}
	h.First, h.Size = h.Lines+1, 0
	return h, f.writeHead(f.key, h, f.durable)
}

// catchUp compares the log with its head, and with what is known of it from elsewhere. It returns the head to go on from,
// and the lines that tell what was found.
func (f *file) catchUp() (h head, notes []Entry, err error) {
	h, notes, err = f.compareWithHead()
	switch {
	case err != nil:
		return h, nil, err
	case h.Lines < f.seen.Lines:
		return f.wentBack(h, notes)
	case f.foreign && h.Lines == 0:
		notes = append(notes, gap("there is no log, but there was one: the copy of its head is sealed with another key"))
	case f.foreign:
		notes = append(notes, gap("the copy of the head did not hold; whether log and head were put back to line %d together is not known", h.Lines))
	}
	return h, notes, nil
}

// wentBack goes on behind the last line that is known to have been written, where log and head know of fewer.
func (f *file) wentBack(h head, notes []Entry) (head, []Entry, error) {
	notes = append(notes, gap("the log ended with line %d, though %d had been written: log and head were put back or taken away", h.Lines, f.seen.Lines))
	if exists(f.log(), -1) {
		var err error
		if h, err = f.setAside(h); err != nil {
			return h, nil, err
		}
	}
	h.Lines = f.seen.Lines
	h.First, h.Size = h.Lines+1, 0
	return h, notes, nil
}

// compareWithHead compares the log with its head, and takes over or sets aside what other processes have left.
func (f *file) compareWithHead() (h head, notes []Entry, err error) {
	h, err = f.readHead(f.key)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.written():
		return head{First: 1}, nil, nil
	case err != nil:
		return f.withoutHead(errors.Is(err, fs.ErrNotExist))
	}
	info, err := os.Lstat(f.log())
	switch {
	case errors.Is(err, fs.ErrNotExist) && h.Size > 0 && exists(f.full(h.First), h.Size): // killed while it was set aside
		h.First, h.Size = h.Lines+1, 0
		return h, nil, nil
	case errors.Is(err, fs.ErrNotExist) && h.Size > 0:
		notes = []Entry{gap("the file with the lines from %d to %d was gone", h.First, h.Lines)}
		h.First, h.Size = h.Lines+1, 0
		return h, notes, nil
	case errors.Is(err, fs.ErrNotExist):
		return h, nil, nil
	case err != nil:
		return h, nil, err
	case info.Size() == h.Size:
		return h, nil, nil
	case info.Size() < h.Size:
		return f.onNewFile(h, gap("the file with the lines from %d to %d had %d bytes of %d", h.First, h.Lines, info.Size(), h.Size))
	}
	return f.takeOver(h)
}

// takeOver counts the lines that a process has written that was killed before it wrote the head.
func (f *file) takeOver(h head) (head, []Entry, error) {
	t, err := readTail(f.log(), f.key, h)
	switch {
	case err != nil:
		return h, nil, err
	case t.foreign:
		return f.onNewFile(t.head, gap("the file with the lines from %d to %d had something behind them that was not written by this server",
			h.First, t.head.Lines))
	case t.rest == 0:
		return t.head, nil, nil
	}
	if err := os.Truncate(f.log(), t.head.Size); err != nil {
		return h, nil, err
	}
	note := Entry{Time: time.Now(), Event: Repaired, Count: uint64(t.rest),
		Reason: fmt.Sprintf("a process was killed while it wrote line %d; what it had written of it, %d bytes, was cut off", t.head.Lines+1, t.rest)}
	return t.head, []Entry{note}, nil
}

// onNewFile leaves a file that does not fit the head as it is, under its final name, and goes on in a new one.
func (f *file) onNewFile(h head, note Entry) (head, []Entry, error) {
	h, err := f.setAside(h)
	return h, []Entry{note}, err
}

// withoutHead goes on behind the last line that there is, where nobody knows whether that was the last.
func (f *file) withoutHead(missing bool) (head, []Entry, error) {
	h, was := head{First: 1}, "damaged"
	if missing {
		was = "missing"
	}
	files, err := f.files()
	if err != nil {
		return h, nil, err
	}
	for _, name := range files {
		if h, err = lastLine(name, f.key, h); err != nil {
			return h, nil, err
		}
	}
	note := gap("the head was %s; whether there were lines after %d is not known", was, h.Lines)
	if !exists(f.log(), -1) {
		h.First, h.Size = h.Lines+1, 0
		return h, []Entry{note}, nil
	}
	return f.onNewFile(h, note)
}

// written tells whether there is any file of the log.
func (f *file) written() bool {
	files, err := f.files()
	return err != nil || len(files) > 0
}

func gap(format string, args ...any) Entry {
	return Entry{Time: time.Now(), Event: Gap, Reason: fmt.Sprintf(format, args...)}
}
