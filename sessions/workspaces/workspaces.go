package workspaces

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions/files"
)

// Owner is who a workspace belongs to, as sessions.Owner.
type Owner struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Key names a workspace as its session is named.
type Key struct {
	Owner Owner
	ID    string
}

// Options say how Folders work.
type Options struct {
	// DataDir is the data folder; workspaces are in a folder there.
	DataDir string
	// UID and GID are whom kernels run as.
	UID, GID int
	// Keeper has the files where kernels share none with this host (kernels.WorkspaceKeeper); nil: they are always in the folders.
	Keeper kernels.WorkspaceKeeper
	// Quota is to what the file system is to bound each workspace, in bytes, where it can; 0: to nothing.
	Quota int64
	// Logger is told of what nobody waits for; nil: nobody is.
	Logger *slog.Logger
}

// Folders gives each (owner, id) its folder.
//
// At any time one session at most has a key (the next one waits until it is gone), so only the maps need a lock: no
// session waits while another's files are written or deleted.
type Folders struct {
	root     string
	uid, gid int
	log      *slog.Logger
	keeper   kernels.WorkspaceKeeper // nil if the files are always in the folders; see kept.go
	quota    int64                   // what the file system bounds each folder to, in bytes; 0: it does not

	// A key's place is shared by who works with its files where they are, and taken alone by who makes its folder, moves the
	// files to another one or takes it away: files may be put into a workspace while its session begins or ends.
	places places
	mu     sync.Mutex
	byKey  map[Key]string
	used   map[Key]*flock.Flock

	keptSpare sync.Map // names of folders of which was said that they are kept: see removeSpare

	seen sync.Map // of labels as they were last read: seenLabel by the folder's name
}

var folderName = regexp.MustCompile(`^[a-z2-7]{16}$`)

// New reads what is there. The error is Unavailable when the folder of workspaces cannot be made.
func New(o Options) (*Folders, error) {
	w := &Folders{
		root: in(o.DataDir), uid: o.UID, gid: o.GID, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), keeper: o.Keeper,
		byKey: map[Key]string{}, used: map[Key]*flock.Flock{},
	}
	// Kernels may run as another user, who must get through this folder to his own; he cannot list it.
	if err := os.MkdirAll(w.root, 0o711); err != nil {
		return nil, fault.New(fault.Unavailable, "the workspaces folder cannot be made: %w", err).
			WithHint("make %s writable for the server, or name another data folder", o.DataDir)
	}
	w.quota = w.quotaOf(o.Quota)
	_, err := w.loadAll()
	return w, err
}

// in is where the workspaces of a data folder are.
func in(dataDir string) string { return filepath.Join(dataDir, "workspaces") }

// newName returns a random name for a folder: 16 of a-z and 2-7, 80 bits.
func newName() string { return strings.ToLower(rand.Text()[:16]) }

// loadAll reads the labels of all folders, and tells whether it has them all, as labels does. What a process that was killed
// has left half done is put in order first.
func (w *Folders) loadAll() (whole bool, err error) {
	labels, whole, err := w.labels()
	w.tidy(labels)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		w.load(name, labels)
	}
	return whole, err
}

// load notes whose a folder is. One that is known already stays a session's folder, while it has its label.
func (w *Folders) load(name string, labels map[string]label) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := labels[name].key()
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

// Known tells whether (owner, id) has a workspace.
func (w *Folders) Known(k Key) bool {
	_, ok := w.lookup(k)
	return ok
}

// IDs are the ids that an owner has workspaces of, those that other processes have made among them.
func (w *Folders) IDs(o Owner) (ids []string, err error) {
	labels, _, err := w.labels()
	for name, l := range labels {
		if l.Owner == o && !l.Spare {
			w.load(name, labels)
			ids = append(ids, l.ID)
		}
	}
	return ids, err
}

func (w *Folders) lookup(k Key) (name string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, ok = w.byKey[k]
	return name, ok
}

// Acquire returns the folder of k, made if need be, and whether there are files in it.
func (w *Folders) Acquire(k Key, language string) (dir string, used bool, err error) {
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
func (w *Folders) name(k Key, language string) (string, error) {
	for range maxMeanwhile {
		name, ok, err := w.find(k)
		if err != nil {
			return "", err
		}
		if !ok {
			name = newName()
		}
		had := w.uses(k)
		if err := w.use(k, name).RLock(); err != nil {
			return "", err
		}
		l, err := w.read(name)
		switch {
		case !ok || had && errors.Is(err, fs.ErrNotExist):
			err = w.write(name, label{Owner: k.Owner, ID: k.ID, Language: language, Created: time.Now().UTC()})
			if err != nil {
				return "", err
			}
		case !had && (err != nil || l.key() != k || w.moving(l)): // before the lock was here
			w.Leave(k)
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
func (w *Folders) find(k Key) (name string, ok bool, err error) {
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
func (w *Folders) labelled(k Key) (name string, l label, err error) {
	name, ok := w.lookup(k)
	if !ok {
		return "", label{}, fs.ErrNotExist
	}
	l, err = w.read(name)
	return name, l, err
}

// forget makes loadAll look again where k's folder is, unless this process uses it.
func (w *Folders) forget(k Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used[k] == nil {
		delete(w.byKey, k)
	}
}

// use gives k its folder, until release, and returns the lock that says so to other processes.
func (w *Folders) use(k Key, name string) *flock.Flock {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byKey[k] = name
	if w.used[k] == nil {
		w.used[k] = w.lock(name)
	}
	return w.used[k]
}

func (w *Folders) lock(name string) *flock.Flock {
	return flock.New(filepath.Join(w.root, name+".lock"), flock.SetPermissions(0o600))
}

// alone tells whether no other process uses k's folder, and then keeps others out of it until the lock is closed.
func (w *Folders) alone(k Key, name string) (lock *flock.Flock, alone bool) {
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

func (w *Folders) makeFolder(dir string) error {
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
