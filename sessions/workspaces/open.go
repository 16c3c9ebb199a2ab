package workspaces

import (
	"io/fs"
	"os"
	"path/filepath"

	"cellblock/sessions/files"
)

// Find returns the folder of k, if there is one.
func (w *Folders) Find(k Key) (dir string, ok bool) {
	defer w.places.share(k)()
	name, err := w.named(k)
	return filepath.Join(w.root, name), err == nil
}

// named returns the name of k's folder; the error is fs.ErrNotExist when there is none. The caller has k's place.
func (w *Folders) named(k Key) (name string, err error) {
	if name, ok := w.lookup(k); ok {
		if _, err := os.Lstat(filepath.Join(w.root, name)); err == nil {
			return name, nil
		}
	}
	name, ok, err := w.find(k)
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	return name, err
}

// Held is a workspace whose files stay where they are until it is closed.
type Held struct {
	*files.Folder
	release func()
}

// Close closes the folder.
func (f *Held) Close() error {
	defer f.release()
	return f.Folder.Close()
}

// Open opens the folder of k; the error is fs.ErrNotExist when there is none.
func (w *Folders) Open(k Key) (*Held, error) {
	leave := w.places.share(k)
	name, letGo, err := w.hold(k)
	if err != nil {
		leave()
		return nil, err
	}
	release := func() { letGo(); leave() }
	f, err := w.openFolder(filepath.Join(w.root, name))
	if err != nil {
		release()
		return nil, err
	}
	return &Held{f, release}, nil
}

// hold keeps other processes from moving or deleting k's files. This one does so by the session that has them, or else for
// itself. The caller has k's place.
func (w *Folders) hold(k Key) (name string, release func(), err error) {
	for range 2 { // the first may be where they were before
		name, err := w.named(k)
		if err != nil {
			return "", nil, err
		}
		if w.uses(k) {
			return name, func() {}, nil
		}
		lock := w.lock(name)
		release := func() { _ = lock.Close() }
		if free, err := lock.TryRLock(); err == nil && free {
			if _, l, err := w.labelled(k); err == nil && !w.moving(l) {
				return name, release, nil
			}
		}
		release()
		w.forget(k)
	}
	return "", nil, errElsewhere
}

// uses tells whether this process has k's folder for a session, or to write to it.
func (w *Folders) uses(k Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used[k] != nil
}

func (w *Folders) openFolder(dir string) (*files.Folder, error) {
	return files.Open(dir, w.uid, w.gid)
}
