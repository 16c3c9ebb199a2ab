package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"cellblock/internal/fault"
)

// Report is what Verify has found.
type Report struct {
	// Lines is how many lines hold, from First to Last, in so many Files.
	Lines       uint64
	First, Last uint64
	Files       int
	// Problems say what is not as it was written, one sentence each. Unnamed counts those beyond the first hundred.
	Problems []string
	Unnamed  int
	// Notes say what is no problem, but good to know.
	Notes []string
}

const maxProblems = 100

// Check says what Verify reads.
type Check struct {
	// Path is the file that is written, and Key what seals its lines.
	Path string
	Key  []byte
	// From is the number of the first line that should be there: 1, or where earlier files were archived, the next line's.
	From uint64
	// Copy is the copy of the head (Copies), read before Verify is called. Nil: there is none.
	Copy []byte
}

// Verify reads a whole log, also while others write it, up to what was written when it began. Its error is NotFound where
// there is no log and nothing says that there was one, and otherwise says why it cannot be read.
func Verify(c Check) (Report, error) {
	n := names{c.Path}
	s, err := n.snapshot(c.Key)
	defer s.close()
	if err != nil {
		return Report{}, fault.New(fault.Unavailable, "the audit log cannot be read: %w", err)
	}
	if len(s.parts) == 0 && errors.Is(s.headErr, fs.ErrNotExist) && c.Copy == nil {
		return Report{}, fault.New(fault.NotFound, "there is no audit log %s", c.Path).WithHint("Name the data folder with --data-dir, or the file with --file.")
	}
	v := &verifier{key: c.Key, next: max(c.From, 1)}
	v.know(c.Copy)
	for i, p := range s.parts {
		if err := v.read(p, i == len(s.parts)-1); err != nil {
			return Report{}, fault.New(fault.Unavailable, "the audit log cannot be read: %w", err)
		}
	}
	v.compare(s)
	return v.result(), nil
}

// snapshot is a log as it was at one moment.
type snapshot struct {
	parts   []part
	head    head
	headErr error
}

type part struct {
	*os.File
	name string
	size int64
}

// snapshot opens what there is. Nobody writes meanwhile, if that can be helped: an archive may be on a disk that takes no lock.
func (n names) snapshot(key []byte) (s snapshot, err error) {
	lock := flock.New(n.lock(), flock.SetFlag(os.O_RDONLY))
	if err := locked(lock.TryRLockContext, lockPatience); err == nil {
		defer lock.Close()
	}
	s.head, s.headErr = n.readHead(key)
	files, err := n.files()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return s, err
		}
		p := part{File: f, name: filepath.Base(name)}
		s.parts = append(s.parts, p)
		info, err := f.Stat()
		if err != nil {
			return s, err
		}
		s.parts[len(s.parts)-1].size = info.Size()
	}
	return s, nil
}

func (s snapshot) close() {
	for _, p := range s.parts {
		_ = p.Close()
	}
}

// verifier follows the lines.
type verifier struct {
	Report
	key  []byte
	next uint64 // the number that should come
	last seal   // of the line before
	sure bool   // last is what the line before had when it was written
	rest int64  // an incomplete line at the end of all

	copy   head  // that is kept elsewhere; Lines is 0 where nothing is known
	atCopy *seal // of the line that the copy names

	missing spans
}

// know takes up what the copy of the head says.
func (v *verifier) know(text []byte) {
	if text == nil {
		return
	}
	if _, err := unsealed(v.key, text, &v.copy); err != nil {
		v.problem("the copy of the head that the database keeps is not of this log, or was changed: %v", err)
		v.copy = head{}
	}
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.Problems) == maxProblems {
		v.Unnamed++
		return
	}
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// read follows the lines of one file.
func (v *verifier) read(p part, newest bool) error {
	v.Files++
	lines := bufio.NewReaderSize(io.LimitReader(p, p.size), 64<<10)
	for n := 1; ; n++ {
		text, whole, err := readLine(lines)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", p.name, err)
		case !whole && len(text) == 0:
			return nil
		case !whole && newest:
			v.rest = int64(len(text))
			return nil
		case !whole:
			v.problem("%s ends in the middle of a line", p.name)
			return nil
		}
		v.line(fmt.Sprintf("%s:%d", p.name, n), text)
	}
}

// line judges one line.
func (v *verifier) line(where string, text []byte) {
	var l line
	s, err := unsealed(v.key, text, &l)
	switch {
	case err != nil && l.Seq == 0:
		v.problem("%s is no line of the log: %v", where, err)
		v.sure = false
		return
	case err != nil:
		v.problem("line %d (%s) was changed: %v", v.next, where, err)
		v.last, v.sure = s, false
		v.next++
		return
	case l.Seq < v.next:
		v.stray(where, l.Seq)
		return
	case l.Seq > v.next:
		v.missing.add(v.next, l.Seq-1)
	case v.sure && l.Before != v.last:
		v.problem("line %d (%s) does not follow from the one before it", l.Seq, where)
	}
	if v.Lines++; v.First == 0 {
		v.First = l.Seq
	}
	v.Last, v.last, v.sure, v.next = l.Seq, s, true, l.Seq+1
	if l.Seq == v.copy.Lines {
		v.atCopy = &s
	}
	v.tells(where, l)
}

// stray judges a line that holds and comes too late.
func (v *verifier) stray(where string, seq uint64) {
	if v.missing.take(seq) {
		v.problem("line %d (%s) is not in its place", seq, where)
		v.Lines++
		return
	}
	v.problem("line %d (%s) is there twice, or from before the first that is expected", seq, where)
}

// tells takes up what the log says of itself.
func (v *verifier) tells(where string, l line) {
	switch l.Event {
	case Gap:
		v.problem("line %d (%s) tells of a gap: %s", l.Seq, where, l.Reason)
	case Repaired:
		v.Notes = append(v.Notes, fmt.Sprintf("line %d (%s): %s", l.Seq, where, l.Reason))
	case Lost:
		v.Notes = append(v.Notes, fmt.Sprintf("line %d (%s): %d lines could not be written before it", l.Seq, where, l.Count))
	}
}

// compare holds the lines against the head.
func (v *verifier) compare(s snapshot) {
	h := s.head
	switch {
	case s.headErr != nil:
		v.problem("there is no head that holds (%v): whether lines are missing at the end is not known", s.headErr)
	case h.Lines >= v.next:
		v.missing.add(v.next, h.Lines)
	case h.Lines < v.next-1:
		v.Notes = append(v.Notes, fmt.Sprintf("the head counts lines up to %d; those after it were written by a process that was killed then", h.Lines))
	case v.sure && h.Last != v.last && h.Lines > 0:
		v.problem("line %d is not the one that the head names", h.Lines)
	}
	v.compareCopy(h)
	if v.rest > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%d bytes of a line that was not finished are at the end; the next start cuts them off and says so", v.rest))
	}
}

// compareCopy holds lines and head against the copy, which may be older than they are, and never newer.
func (v *verifier) compareCopy(h head) {
	end := max(v.next-1, h.Lines) // up to which lines were found, or are named as missing
	switch {
	case v.copy.Lines > end:
		v.problem("the database counts lines up to %d, and the log ends with %d: log and head were put back or taken away", v.copy.Lines, end)
		v.missing.add(end+1, v.copy.Lines)
	case v.atCopy != nil && *v.atCopy != v.copy.Last:
		v.problem("line %d is not the one that the database names: log and head were exchanged", v.copy.Lines)
	}
}

func (v *verifier) result() Report {
	for _, gap := range v.missing {
		if gap.from == gap.to {
			v.problem("line %d is missing", gap.from)
			continue
		}
		v.problem("lines %d to %d are missing", gap.from, gap.to)
	}
	return v.Report
}

// spans are numbers, as ranges.
type spans []struct{ from, to uint64 }

func (s *spans) add(from, to uint64) { *s = append(*s, struct{ from, to uint64 }{from, to}) }

// take removes a number, and tells whether it was among them.
func (s *spans) take(n uint64) bool {
	for i, span := range *s {
		if n < span.from || n > span.to {
			continue
		}
		rest := append(spans{}, (*s)[:i]...)
		if span.from < n {
			rest.add(span.from, n-1)
		}
		if n < span.to {
			rest.add(n+1, span.to)
		}
		*s = append(rest, (*s)[i+1:]...)
		return true
	}
	return false
}
