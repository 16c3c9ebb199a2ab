package sessions

import (
	"slices"
	"sync"
	"time"

	"cellblock/sessions/files"
)

const (
	// maxWritten is how many files a result names that its cell wrote.
	maxWritten = 10
	// maxPause is the most cells after which a workspace that had too many files to look at is looked at again.
	maxPause = 32
)

// written knows what the files of a workspace looked like when the last cell ended, and so which ones a cell has written
// or deleted.
// What background work writes between two cells counts as the next one's.
type written struct {
	mu   sync.Mutex
	seen files.Scan // nil: not known
	// skip is for how many cells more not to look, pause how many it will be if there are too many files again.
	skip, pause int
}

// look compares a workspace with what it was when it was last looked at.
func (w *written) look(f *files.Folder) []files.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.skip--; w.skip >= 0 {
		return nil
	}
	before := w.seen
	now, all := f.Scan()
	if !all {
		w.seen, w.pause = nil, min(max(1, 2*w.pause), maxPause)
		w.skip = w.pause
		return nil
	}
	w.seen, w.skip, w.pause = now, 0, 0
	if before == nil {
		return nil
	}
	return slices.DeleteFunc(now.Since(before), func(c files.Change) bool { return c.Deleted && !f.Gone(c.Path) })
}

// begin takes what is there for known, but for what was written since a time.
func (w *written) begin(f scanner, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now, all := f.Scan(); all {
		w.seen = now.Before(since)
	}
}

// scanner is an open workspace.
type scanner interface{ Scan() (files.Scan, bool) }

// know takes note of a file that no cell has written.
func (w *written) know(path string, stamp files.Stamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != nil {
		w.seen.Know(path, stamp)
	}
}

// forget takes note of a file or a folder that no cell has deleted.
func (w *written) forget(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Forget(path)
}

// filesBefore has the next filesWritten tell what has been written since a time. Called by the runner.
func (s *session) filesBefore(since time.Time) {
	f, err := s.manager.workspaces.Open(s.key.workspace())
	if err != nil {
		return
	}
	defer f.Close()
	s.written.begin(f, since)
}

// filesWritten returns which files have been written or deleted since it was last called, as far as that can be told cheaply, and how
// many there are beyond those. Called by the runner.
func (s *session) filesWritten() (changes []files.Change, more int) {
	if s.manager.workspaces.Away(s.ctx) {
		return nil, 0
	}
	f, err := s.manager.workspaces.Open(s.key.workspace())
	if err != nil {
		return nil, 0
	}
	defer f.Close()
	changes = s.written.look(f.Folder)
	named := min(len(changes), maxWritten)
	return changes[:named:named], len(changes) - named
}
