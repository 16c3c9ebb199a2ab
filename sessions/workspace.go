package sessions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions/files"
)

// workspaces gives each (owner, id) its folder. The folder has an opaque name; a small file beside it, NAME.json, says
// whose it is, so that files are found again after a restart of the server.
//
// At any time one session at most has a key (the next one waits until it is gone), so only the maps need a lock: no
// session waits while another's files are written or deleted. Other processes may use the same data folder, for the same
// owner too: each finds the folders that others have made, and deletes none that another one uses, which the lock NAME.lock
// tells.
type workspaces struct {
	root     string
	uid, gid int
	log      *slog.Logger
	keeper   kernels.WorkspaceKeeper // nil if the files are always in the folders; see kept.go
	quota    int64                   // what the file system bounds each folder to, in bytes; 0: it does not

	// A key's place is shared by who works with its files where they are, and taken alone by who makes its folder, moves the
	// files to another one or takes it away: files may be put into a workspace while its session begins or ends.
	places places
	mu     sync.Mutex
	byKey  map[key]string
	used   map[key]*flock.Flock

	keptSpare sync.Map // names of folders of which was said that they are kept: see removeSpare

	seen sync.Map // of labels as they were last read: seenLabel by the folder's name
}

// label is what stands in the file beside a workspace.
type label struct {
	Owner    Owner     `json:"owner"`
	ID       string    `json:"session_id"`
	Language string    `json:"language"`
	Created  time.Time `json:"created"`
	// Spare tells that the folder is a pooled kernel's: empty, and no session's yet.
	Spare bool `json:"spare,omitempty"`
	// From is the folder that the session had before, while its files are being moved into this one. It stands in a link beside
	// the label: see announce. Labels that were written by older versions have it themselves.
	From string `json:"from,omitempty"`
}

var folderName = regexp.MustCompile(`^[a-z2-7]{16}$`)

// openWorkspaces reads what is there. Kernels run as uid and gid.
func openWorkspaces(dataDir string, uid, gid int, log *slog.Logger) (*workspaces, error) {
	w := &workspaces{
		root: workspacesIn(dataDir), uid: uid, gid: gid, log: log,
		byKey: map[key]string{}, used: map[key]*flock.Flock{},
	}
	// Kernels may run as another user, who must get through this folder to his own; he cannot list it.
	if err := os.MkdirAll(w.root, 0o711); err != nil {
		return nil, fault.New(fault.Unavailable, "the workspaces folder cannot be made: %w", err).
			WithHint("make %s writable for the server, or name another data folder", dataDir)
	}
	_, err := w.loadAll()
	return w, err
}

func workspacesIn(dataDir string) string { return filepath.Join(dataDir, "workspaces") }

// loadAll reads the labels of all folders, and tells whether it has them all, as labels does. What a process that was killed
// has left half done is put in order first.
func (w *workspaces) loadAll() (whole bool, err error) {
	labels, whole, err := w.labels()
	w.tidy(labels)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		w.load(name, labels)
	}
	return whole, err
}

// load notes whose a folder is. One that is known already stays a session's folder, while it has its label.
func (w *workspaces) load(name string, labels map[string]label) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := key{labels[name].Owner, labels[name].ID}
	other := w.byKey[k]
	if w.used[k] != nil && other != "" {
		return // its kernel runs there
	}
	if _, ok := labels[other]; ok && other != name {
		w.log.Warn("two workspaces have one session's label, the second is left alone", "first", other, "second", name)
		return
	}
	w.byKey[k] = name
}

// known tells whether (owner, id) has a workspace.
func (w *workspaces) known(k key) bool {
	_, ok := w.lookup(k)
	return ok
}

// idsOf are the ids that an owner has workspaces of, those that other processes have made among them.
func (w *workspaces) idsOf(o Owner) (ids []string, err error) {
	labels, _, err := w.labels()
	for name, l := range labels {
		if l.Owner == o && !l.Spare {
			w.load(name, labels)
			ids = append(ids, l.ID)
		}
	}
	return ids, err
}

func (w *workspaces) lookup(k key) (name string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, ok = w.byKey[k]
	return name, ok
}

// acquire returns the folder of k, made if need be, and whether there are files in it.
func (w *workspaces) acquire(k key, language string) (dir string, used bool, err error) {
	defer w.places.lock(k)()
	name, err := w.name(k, language)
	if err != nil {
		w.log.Error("workspace cannot be made", "error", err)
		return "", false, fault.New(fault.Unavailable, "the session's workspace cannot be made: %w", files.Pathless(err)).
			WithHint("the operator must check the data folder: its disk and its permissions")
	}
	dir = filepath.Join(w.root, name)
	entries, err := os.ReadDir(dir)
	return dir, len(entries) > 0, err
}

// maxMeanwhile is how often a folder is looked for that another process moves or deletes meanwhile.
const maxMeanwhile = 8

// name returns the name of k's folder, which it makes, with its label, if it is not there.
func (w *workspaces) name(k key, language string) (string, error) {
	for range maxMeanwhile {
		name, ok, err := w.find(k)
		if err != nil {
			return "", err
		}
		if !ok {
			name = newKernelID()
		}
		had := w.uses(k)
		if err := w.use(k, name).RLock(); err != nil {
			return "", err
		}
		l, err := w.read(name)
		switch {
		case !ok || had && errors.Is(err, fs.ErrNotExist):
			err = w.write(name, label{Owner: k.owner, ID: k.id, Language: language, Created: time.Now().UTC()})
			if err != nil {
				return "", err
			}
		case !had && (err != nil || key{l.Owner, l.ID} != k || w.moving(l)): // before the lock was here
			w.leave(k)
			w.forget(k)
			continue
		}
		return name, w.makeFolder(filepath.Join(w.root, name))
	}
	return "", errElsewhere
}

// errElsewhere is why files cannot be had now.
var errElsewhere = fault.New(fault.Busy, "another cellblock process moves or deletes the session's files").
	WithHint("try again in a moment; if it stays so, the operator must look into the server's log")

// find returns the name of k's folder, if it has one. Another process may have made it, or moved it.
func (w *workspaces) find(k key) (name string, ok bool, err error) {
	if name, l, err := w.labelled(k); err == nil && !w.moving(l) {
		return name, true, nil
	}
	for range maxMeanwhile {
		w.forget(k)
		whole, err := w.loadAll()
		if err != nil {
			return "", false, err
		}
		name, l, err := w.labelled(k)
		switch {
		case err == nil && w.moving(l):
			w.log.Warn("a session's files are on their way to another folder", "from", l.From, "to", name)
			return "", false, errElsewhere
		case err == nil || w.uses(k):
			return name, true, nil
		case name == "" && whole:
			return "", false, nil
		}
	}
	return "", false, errElsewhere
}

// labelled returns k's folder, as it is known, and what stands beside it now.
func (w *workspaces) labelled(k key) (name string, l label, err error) {
	name, ok := w.lookup(k)
	if !ok {
		return "", label{}, fs.ErrNotExist
	}
	l, err = w.read(name)
	return name, l, err
}

// forget makes loadAll look again where k's folder is, unless this process uses it.
func (w *workspaces) forget(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used[k] == nil {
		delete(w.byKey, k)
	}
}

func (w *workspaces) labelPath(name string) string { return filepath.Join(w.root, name+".json") }
func (w *workspaces) fromPath(name string) string  { return filepath.Join(w.root, name+".from") }

// use gives k its folder, until release, and returns the lock that says so to other processes.
func (w *workspaces) use(k key, name string) *flock.Flock {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byKey[k] = name
	if w.used[k] == nil {
		w.used[k] = w.lock(name)
	}
	return w.used[k]
}

func (w *workspaces) lock(name string) *flock.Flock {
	return flock.New(filepath.Join(w.root, name+".lock"), flock.SetPermissions(0o600))
}

// alone tells whether no other process uses k's folder, and then keeps others out of it until the lock is closed.
func (w *workspaces) alone(k key, name string) (lock *flock.Flock, alone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lock = w.used[k]
	delete(w.used, k)
	if lock == nil {
		lock = w.lock(name)
	}
	alone, err := lock.TryLock()
	return lock, alone && err == nil
}

func (w *workspaces) makeFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	w.bound(dir)
	if os.Geteuid() == 0 {
		return os.Lchown(dir, w.uid, w.gid)
	}
	return nil
}

// write puts a label in its place in one step, so that a crash leaves the old one or the new one, and a full disk the old.
func (w *workspaces) write(name string, l label) error {
	return w.replace(name, l, func(string) error { return nil })
}

// rewrite is write for a label by which files are found that may have been there for long: the disk has the new one before
// the old one goes.
func (w *workspaces) rewrite(name string, l label) error { return w.replace(name, l, syncFile) }

// replace puts a label in its place when it is as it must be.
func (w *workspaces) replace(name string, l label, ready func(path string) error) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	path := w.labelPath(name)
	if err = os.WriteFile(path+".tmp", data, 0o600); err == nil {
		err = ready(path + ".tmp")
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		_ = os.Remove(path + ".tmp")
	}
	return err
}

// release is called when nothing runs in k's folder any more. The folder goes when it is empty or when remove is true.
func (w *workspaces) release(k key, remove bool) error {
	defer w.places.lock(k)()
	if remove {
		return w.delete(k)
	}
	w.giveBack(k)
	return nil
}

// giveBack is release without remove, for who has k's place alone.
func (w *workspaces) giveBack(k key) {
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
func (w *workspaces) delete(k key) error {
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
func (w *workspaces) remains(k key) (name, from string, ok bool, err error) {
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
func (w *workspaces) deleteFolder(name string) error {
	if name == "" {
		return nil
	}
	dir := filepath.Join(w.root, name)
	w.unbound(dir)
	return removeAll(dir)
}

// drop forgets a folder that is gone. The caller has its lock.
func (w *workspaces) drop(k key, name string) error {
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
