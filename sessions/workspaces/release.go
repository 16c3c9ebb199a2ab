package workspaces

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cellblock/internal/fault"
	"cellblock/sessions/files"
)

// Release is called when nothing runs in k's folder any more. The folder goes when it is empty or when remove is true.
func (w *Folders) Release(k Key, remove bool) error {
	defer w.places.lock(k)()
	if remove {
		return w.delete(k)
	}
	w.giveBack(k)
	return nil
}

// GiveBack is Release without remove, if the folder is of no use to anybody: that is asked while k's place is taken.
func (w *Folders) GiveBack(k Key, unused func() bool) {
	defer w.places.lock(k)()
	if unused() {
		w.giveBack(k)
	}
}

// giveBack is Release without remove, for who has k's place alone.
func (w *Folders) giveBack(k Key) {
	name, ok := w.lookup(k)
	if !ok {
		return
	}
	lock, alone := w.alone(k, name)
	defer lock.Close()
	if alone && w.removeIfEmpty(name) {
		_ = w.drop(k, name) // or its label is swept
	}
}

// delete deletes k's files, also those that are still to come from another folder because a move was not finished.
func (w *Folders) delete(k Key) error {
	name, from, ok, err := w.remains(k)
	if err != nil || !ok {
		return err
	}
	lock, alone := w.alone(k, name)
	defer lock.Close()
	if from != "" && alone {
		other := w.lock(from)
		defer other.Close()
		free, err := other.TryLock()
		alone = free && err == nil
	}
	if !alone {
		return fault.New(fault.Conflict, "the session's files are kept, because another cellblock process on this machine uses them").
			WithHint("close the session of that id there too, and then delete them")
	}
	for _, folder := range []string{from, name} {
		if err := w.deleteFolder(folder); err != nil {
			w.log.Error("workspace cannot be deleted", "error", err)
			return fault.New(fault.Internal, "the session's files could not all be deleted: %w", files.Pathless(err))
		}
	}
	if from != "" {
		_ = w.drop(k, from)
	}
	return errors.Join(w.drop(k, name), w.deleteKept(name))
}

// remains is find, but also names the folder from which files are to come of a move that cannot be finished.
func (w *Folders) remains(k Key) (name, from string, ok bool, err error) {
	w.forget(k)
	if _, err := w.loadAll(); err != nil {
		return "", "", false, err
	}
	name, ok, err = w.find(k)
	if err == nil {
		return name, "", ok, nil
	}
	if name, l, labelErr := w.labelled(k); labelErr == nil && w.moving(l) {
		return name, l.From, true, nil
	}
	return "", "", false, err
}

// deleteFolder deletes a folder with all that is in it; "" is none.
func (w *Folders) deleteFolder(name string) error {
	if name == "" {
		return nil
	}
	dir := filepath.Join(w.root, name)
	w.unbound(dir)
	return removeAll(dir)
}

// drop forgets a folder that is gone. The caller has its lock.
func (w *Folders) drop(k Key, name string) error {
	w.mu.Lock()
	if w.byKey[k] == name {
		delete(w.byKey, k)
	}
	w.mu.Unlock()
	err := os.Remove(w.labelPath(name)) // first: who has a new lock must not find it
	_ = os.Remove(w.fromPath(name))
	_ = os.Remove(w.lock(name).Path())
	return err
}

// removeAll is os.RemoveAll for folders that users' code may have made unreadable.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// The kernel has stopped: nothing moves under our feet. WalkDir opens a folder after it was handed to the function.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Leave lets the next process have k's folder, in which a kernel runs on.
func (w *Folders) Leave(k Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lock := w.used[k]; lock != nil {
		_ = lock.Close()
		delete(w.used, k)
	}
}
