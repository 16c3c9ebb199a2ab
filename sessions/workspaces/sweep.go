package workspaces

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Sweep removes what was last changed before some time and is nobody's: empty folders without a label or of sessions that
// are not known, and labels and locks of folders that are gone. What holds files is left alone.
func (w *Folders) Sweep(before time.Time, known func(Key) bool) {
	entries, err := os.ReadDir(w.root)
	if err != nil {
		w.log.Warn("the workspaces cannot be looked at", "error", err)
		return
	}
	names := map[string]bool{}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		if folderName.MatchString(name) {
			names[name] = true
		}
	}
	for name := range names {
		if what := w.sweepOne(name, before, known); what != "" {
			w.log.Info("swept a workspace that is nobody's", "workspace", name, "what", what)
		}
	}
}

// sweepOne removes one workspace if it is nobody's, and says what there was of it.
func (w *Folders) sweepOne(name string, before time.Time, known func(Key) bool) (what string) {
	k, what := w.nobodys(name, before, known) // nobody waits while the store is asked
	if what == "" {
		return ""
	}
	defer w.places.lock(k)() // nobody here gets the folder meanwhile
	if !w.unchangedSince(name, before) {
		return ""
	}
	lock := w.lock(name)
	defer lock.Close()
	if alone, err := lock.TryLock(); err != nil || !alone {
		return "" // a process uses it
	}
	if !w.removeIfEmpty(name) {
		return ""
	}
	_ = w.drop(k, name)
	return what
}

// nobodys tells whose a workspace was that is nobody's, and what there is of it; nothing of one that is left alone.
func (w *Folders) nobodys(name string, before time.Time, known func(Key) bool) (k Key, what string) {
	if !w.unchangedSince(name, before) {
		return Key{}, ""
	}
	l, err := w.read(name)
	if there, err := countEntries(filepath.Join(w.root, name), 1); there > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Key{}, ""
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Key{}, "an empty folder without a label"
	case err != nil || l.Spare || l.From != "" || known(l.key()):
		return Key{}, "" // not to be read, or seen to by tidy, or somebody's
	}
	return l.key(), "an empty folder of a session that is not known"
}

// unchangedSince tells whether nothing of a workspace was changed after some time.
func (w *Folders) unchangedSince(name string, before time.Time) bool {
	for _, path := range []string{filepath.Join(w.root, name), w.labelPath(name), w.lock(name).Path()} {
		if info, err := os.Lstat(path); err == nil && !info.ModTime().Before(before) {
			return false
		}
	}
	return true
}
