package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// A kernel in the pool was launched in a folder of its own, and cannot be given another one: a container's mounts are made
// once. So a session that has files gets them renamed into that folder, and the folder is the session's from then on.
//
// The new folder's label decides. It says Spare. A link, NAME.from, says From which folder files will come; then that folder's
// label takes the place of the new one's, which is the session's from then on; then the files come, and then the link goes. A
// process that is killed in between leaves it to the next one, on the same data folder, to go on where it stopped, or to go back
// if that does not work. Nothing is ever copied or replaced, and no name is in two places. All of it are changes of names, and a
// move makes no content, so nobody waits for the disk: what the power's failure leaves is what there was at some moment
// before it. Where names come back in another order all the same, the folder may say Spare and have files: then it is kept, for
// the operator. So it is where the label comes back empty, with which the move has nothing to do: it is the session's first one,
// and the power failed within the half-minute that a system takes to write what nobody asked it to. The files are no older, and
// are written no sooner. What stands in a label that may be older is waited for: see rewrite.

// maxMoved bounds the entries of a folder whose files are moved: more take longer than a kernel's start.
const maxMoved = 10_000

// Spare is an empty folder that is no session's yet. Its lock keeps it from being taken for a killed process's.
type Spare struct {
	// Dir is where it is.
	Dir string

	name     string
	lock     *flock.Flock
	replaced replaced // when it was given to a session, until LetGo
}

// NewSpare makes a folder for a kernel that has no session yet.
func (w *Folders) NewSpare() (*Spare, error) {
	name := newName()
	f := &Spare{name: name, Dir: filepath.Join(w.root, name), lock: w.lock(name)}
	free, err := f.lock.TryLock()
	if err == nil && !free {
		err = fmt.Errorf("the new folder %s is locked", name)
	}
	if err == nil {
		err = w.write(name, label{Spare: true, Created: time.Now().UTC()})
	}
	if err == nil {
		err = w.makeFolder(f.Dir)
	}
	if err != nil {
		if free {
			w.remove(name) // on a full disk, say, there may be half of it
		}
		_ = f.lock.Close()
		return nil, err
	}
	return f, nil
}

// LetGo gives back what held the place on the disk of all that f has replaced. Nobody should wait for it.
func (f *Spare) LetGo() { f.replaced.letGo() }

// Discard removes a folder that no session got. Nothing runs in it any more.
func (w *Folders) Discard(f *Spare) {
	defer f.lock.Close()
	f.replaced.letGo()
	if l, err := w.read(f.name); err == nil && l.Spare {
		w.remove(f.name)
	}
}

// remove removes a folder in which nothing is, or nothing that anybody wants, with what stands beside it.
func (w *Folders) remove(name string) {
	w.unbound(filepath.Join(w.root, name))
	if err := removeAll(filepath.Join(w.root, name)); err != nil {
		w.log.Error("spare workspace cannot be removed", "error", err)
		return
	}
	_ = os.Remove(w.labelPath(name))
	_ = os.Remove(w.fromPath(name))
	_ = os.Remove(w.lock(name).Path())
	_ = w.deleteKept(name)
}

// Give makes a spare folder k's, with the files that k has, and tells whether there are any, and whether cells have run in
// k's folder before. After an error k has what it had, and the spare folder is of no use; else LetGo is for the caller, when
// nobody waits for it.
func (w *Folders) Give(k Key, language string, f *Spare) (used, ran bool, err error) {
	defer w.places.lock(k)()
	old, ok, err := w.find(k)
	if err == nil && ok {
		err = w.Reachable(context.Background())
	}
	if err != nil {
		return false, false, err
	}
	f.replaced.hold(w.labelPath(f.name))
	if ok {
		used, ran, err = w.giveFiles(k, old, f)
	} else {
		err = w.write(f.name, label{Owner: k.Owner, ID: k.ID, Language: language, Created: time.Now().UTC()})
	}
	if err != nil {
		return false, false, err
	}
	_ = f.lock.Close()
	return used, ran, w.use(k, f.name).RLock()
}

// giveFiles moves the files of k from its old folder into f.
func (w *Folders) giveFiles(k Key, old string, f *Spare) (used, ran bool, err error) {
	lock, alone := w.alone(k, old)
	defer lock.Close()
	if !alone {
		return false, false, errors.New("another process uses the session's files")
	}
	copying := copyLock(w.root)
	defer copying.Close()
	if free, err := copying.TryLock(); err == nil && !free {
		return false, false, errors.New("the workspaces are being copied")
	}
	l, err := w.read(old)
	if err != nil {
		return false, false, err
	}
	there, err := countEntries(f.Dir, 1)
	if err != nil || there > 0 {
		return false, false, errors.Join(errors.New("the kernel has made files of its own"), err)
	}
	moved, err := countEntries(filepath.Join(w.root, old), maxMoved+1)
	if err != nil || moved > maxMoved {
		return false, false, errors.Join(errors.New("the session has very many files"), err)
	}
	ran = l.Language != "" // or somebody has only put files there
	l.From = old
	if err := w.announce(f.name, l); err != nil {
		return false, false, err
	}
	f.replaced.hold(filepath.Join(w.root, old))
	kept, err := w.finish(f.name, l)
	if err == nil && kept != f.name {
		err = errors.New("they cannot be moved")
	}
	return moved > 0, ran, err
}

// copyLock is held, shared with others, by who copies workspaces, and alone by who moves files from one to another: a copy
// made meanwhile could have them in neither.
func copyLock(root string) *flock.Flock { return flock.New(root, flock.SetFlag(os.O_RDONLY)) }

// HoldAll keeps the files of a data folder's sessions in the folders where they are, until release, and names these, with
// those from which a process that was killed has not moved all files. The error is fs.ErrNotExist when there are none.
func HoldAll(dataDir string) (folders []string, release func() error, err error) {
	w := &Folders{root: in(dataDir), log: slog.New(slog.DiscardHandler)}
	lock := copyLock(w.root)
	if err := lock.RLock(); err != nil {
		return nil, lock.Close, err
	}
	labels, _, err := w.labels()
	for name, l := range labels {
		folders = append(folders, name)
		if _, labelled := labels[l.From]; w.moving(l) && !labelled && folderName.MatchString(l.From) {
			folders = append(folders, l.From)
		}
	}
	slices.Sort(folders)
	return folders, lock.Close, err
}

// announce has a folder's label say that it is a session's, and from where its files come.
func (w *Folders) announce(name string, l label) error {
	if os.Symlink(l.From, w.fromPath(name)) != nil {
		return w.rewrite(name, l) // the file system knows no links: older versions' way, which finish knows
	}
	err := os.Rename(w.labelPath(l.From), w.labelPath(name))
	if err != nil {
		_ = os.Remove(w.fromPath(name))
	}
	return err
}

// arrived has a folder's label say that its session's files are all there.
func (w *Folders) arrived(name string, l label) {
	l.From = ""
	if errors.Is(os.Remove(w.fromPath(name)), fs.ErrNotExist) {
		_ = w.rewrite(name, l) // or it goes on to name a folder that is not there, which is the same
	}
}

// moving tells whether a label's folder may not have all of its session's files yet.
func (w *Folders) moving(l label) bool {
	if l.From == "" {
		return false
	}
	_, err := os.Lstat(filepath.Join(w.root, l.From))
	return !errors.Is(err, fs.ErrNotExist)
}

// finish ends a move that the label of the folder name describes: all files are in one folder then, which it returns. The
// caller has the locks of both. An error means that the files are in both still.
func (w *Folders) finish(name string, l label) (kept string, err error) {
	from := l.From
	forth := os.Remove(w.labelPath(from)) // what is in the folder is found by the other label now
	if forth == nil || errors.Is(forth, fs.ErrNotExist) {
		w.boundTogether(filepath.Join(w.root, from), filepath.Join(w.root, name))
		forth = moveEntries(filepath.Join(w.root, from), filepath.Join(w.root, name))
	}
	if forth == nil {
		_ = os.Remove(w.lock(from).Path())
		w.arrived(name, l)
		return name, nil
	}
	w.log.Warn("a session's files cannot be moved to another folder", "error", forth)
	if err := moveEntries(filepath.Join(w.root, name), filepath.Join(w.root, from)); err != nil {
		return "", errors.Join(forth, err)
	}
	l.From = ""
	if err := w.rewrite(from, l); err != nil {
		return "", err
	}
	_ = os.Remove(w.labelPath(name)) // before the link: without it, it would be the session's
	_ = os.Remove(w.fromPath(name))
	_ = os.Remove(w.lock(name).Path())
	return from, nil
}

// tidy deals with what processes that were killed have left half done, and takes from labels what is none any more.
func (w *Folders) tidy(labels map[string]label) {
	for name, l := range labels {
		switch {
		case l.Spare:
			delete(labels, name)
			w.locked(name, func(l label) {
				if l.Spare {
					w.removeSpare(name)
				}
			})
		case l.From != "":
			delete(labels, l.From)
			w.locked(name, func(l label) { w.resume(name, l, labels) })
		}
	}
}

// removeSpare removes the folder of a kernel that was no session's, unless something is in it: that may be files whose label
// was not on the disk yet when the power failed.
func (w *Folders) removeSpare(name string) {
	there, err := countEntries(filepath.Join(w.root, name), 1)
	if err == nil && there == 0 || errors.Is(err, fs.ErrNotExist) {
		w.remove(name)
		return
	}
	if _, told := w.keptSpare.LoadOrStore(name, true); !told {
		w.log.Warn("a workspace that is no session's is kept, because there are files in it", "workspace", name, "error", err)
	}
}

// resume goes on with a move, if nobody else is at it.
func (w *Folders) resume(name string, l label, labels map[string]label) {
	if l.From == "" || !folderName.MatchString(l.From) {
		return
	}
	lock := w.lock(l.From)
	defer lock.Close()
	if free, err := lock.TryLock(); err != nil || !free {
		return
	}
	kept, err := w.finish(name, l)
	if err != nil {
		w.log.Error("a session's files are in two folders, because they cannot be moved", "from", l.From, "to", name, "error", err)
		return
	}
	l.From = ""
	delete(labels, name)
	labels[kept] = l
}

// locked calls f with a folder's label, if nobody uses the folder, and keeps everybody from it meanwhile.
func (w *Folders) locked(name string, f func(label)) {
	lock := w.lock(name)
	defer lock.Close()
	if free, err := lock.TryLock(); err != nil || !free {
		return
	}
	if l, err := w.read(name); err == nil {
		f(l)
	}
}

// moveEntries renames all that is in one folder into another, and removes the first. It replaces nothing.
func moveEntries(from, to string) error {
	const rounds = 8 // something may be written meanwhile, by who has just found the folder
	for range rounds {
		entries, err := os.ReadDir(from)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := renameNew(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
				return err
			}
		}
		if os.Remove(from) == nil {
			return nil
		}
	}
	return fmt.Errorf("%s does not get empty", from)
}

// lookAndRename is renameNew where the system cannot do both in one step.
func lookAndRename(from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	return os.Rename(from, to)
}

// countEntries counts what is in a folder, up to most.
func countEntries(dir string, most int) (int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names), err
}

// syncFile has a file or folder written to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
