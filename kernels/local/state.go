//go:build linux

package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Each kernel has a folder in the state folder:
//
//	lock    held exclusively by who launches or sweeps, shared by every open handle
//	state   what finds the kernel again (state); missing while the launch has not got that far
//	status  what happened to the sandbox (statusLine)
//	log     what bubblewrap and the shim wrote
//
// A folder without state and without a holder of its lock is what a server left that died while launching.
const (
	lockFile   = "lock"
	stateFile  = "state"
	statusFile = "status"
	logFile    = "log"
)

const stateVersion = 1

// maxState bounds what is read of a state file.
const maxState = 64 << 10

var idRule = regexp.MustCompile(`^[a-z0-9]{8,32}$`)

// errBusy is what locking an entry returns whose lock somebody else holds.
var errBusy = errors.New("the kernel's folder is in use")

// errCopied is what loading the state of a kernel returns whose folder is a copy: the kernel is that of the server on the data folder
// that was copied, and none of ours to take away.
var errCopied = errors.New("the folder is a copy of another server's")

// state is what finds a kernel again and takes away what it leaves.
type state struct {
	Version int       `json:"version"`
	Boot    string    `json:"boot"`
	Started time.Time `json:"started"`
	// Main is the process that was started: bubblewrap outside the sandbox, or the shim itself where there is none.
	Main identity `json:"main"`
	// Init is the sandbox's pid 1, once known. All of the sandbox ends with it.
	Init      *identity `json:"init,omitempty"`
	Sandboxed bool      `json:"sandboxed"`
	Group     group     `json:"group"`
	// Slot is that of the process which launched the kernel.
	Slot   string            `json:"slot,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Inode is that of the kernel's folder, which a copy of it has not.
	Inode uint64 `json:"inode,omitempty"`
}

// entry is one kernel's folder.
type entry struct {
	id   string
	dir  string
	lock *os.File
}

// Folders in the making and in the course of removal have names of their own, so that a kernel's folder appears locked and
// disappears whole.
const (
	makingPrefix   = ".new-"
	removingPrefix = ".old-"
)

// newEntry makes the folder of a kernel that is about to be launched, locked exclusively. It returns os.ErrExist if there
// is one.
func newEntry(stateDir, id string) (*entry, error) {
	making, err := os.MkdirTemp(stateDir, makingPrefix)
	if err != nil {
		return nil, err
	}
	e := &entry{id: id, dir: filepath.Join(stateDir, id)}
	if e.lock, err = openLock(making, os.O_CREATE, unix.LOCK_EX); err == nil {
		// A folder with something in it is never replaced, and there is always the lock in it.
		err = unix.Rename(making, e.dir)
	}
	if err != nil {
		_ = e.close()
		_ = os.RemoveAll(making)
		return nil, err
	}
	return e, nil
}

// openEntry opens an existing folder and locks it, unix.LOCK_SH to use it, unix.LOCK_EX to take it away. It returns
// errBusy where others' locks forbid that, os.ErrNotExist where there is none.
func openEntry(stateDir, id string, how int) (*entry, error) {
	e := &entry{id: id, dir: filepath.Join(stateDir, id)}
	var err error
	if e.lock, err = openLock(e.dir, 0, how); err != nil {
		return nil, err
	}
	return e, nil
}

func openLock(dir string, flags, how int) (*os.File, error) {
	f, err := openRegular(filepath.Join(dir, lockFile), os.O_RDWR|flags)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// share turns the launch's exclusive lock into the handle's shared one.
func (e *entry) share() error { return flock(e.lock, unix.LOCK_SH) }

func (e *entry) close() error {
	if e.lock == nil {
		return nil
	}
	return e.lock.Close()
}

// remove takes the folder away, and with it the last trace of the kernel.
func (e *entry) remove() error {
	removing := filepath.Join(filepath.Dir(e.dir), removingPrefix+e.id)
	err := os.Rename(e.dir, removing)
	if errors.Is(err, os.ErrExist) { // somebody else began and died
		if err = os.RemoveAll(removing); err == nil {
			err = os.Rename(e.dir, removing)
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(removing)
}

// abandoned tells whether a folder of the state folder was left by a server that died while making or removing it.
func abandoned(d os.DirEntry) bool {
	if !strings.HasPrefix(d.Name(), makingPrefix) && !strings.HasPrefix(d.Name(), removingPrefix) {
		return false
	}
	info, err := d.Info()
	return err == nil && time.Since(info.ModTime()) > time.Minute
}

func (e *entry) path(file string) string { return filepath.Join(e.dir, file) }

// load reads the state; os.ErrNotExist where the launch did not get that far.
func (e *entry) load() (state, error) {
	f, err := openRegular(e.path(stateFile), os.O_RDONLY)
	if err != nil {
		return state{}, err
	}
	defer f.Close()
	var st state
	if err := json.NewDecoder(io.LimitReader(f, maxState)).Decode(&st); err != nil {
		return state{}, fmt.Errorf("state of kernel %s: %w", e.id, err)
	}
	if st.Version != stateVersion {
		return state{}, fmt.Errorf("state of kernel %s: version %d, this program writes %d", e.id, st.Version, stateVersion)
	}
	switch inode, err := e.inode(); {
	case err != nil:
		return state{}, fmt.Errorf("state of kernel %s: %w", e.id, err)
	case st.Inode != 0 && inode != st.Inode:
		return state{}, fmt.Errorf("state of kernel %s: %w", e.id, errCopied)
	}
	st.Inode = 0 // which is the file's alone
	return st, nil
}

// save writes the state so that a reader, also after a crash, finds the old one or the new one whole.
func (e *entry) save(st state) error {
	inode, err := e.inode()
	if err != nil {
		return err
	}
	st.Inode = inode
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	next := e.path(stateFile + ".new")
	f, err := openRegular(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, e.path(stateFile))
}

// inode is the number of the kernel's folder, which it keeps where the data folder is moved.
func (e *entry) inode() (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(e.dir, &st)
	return st.Ino, err
}

// openRegular opens a regular file, mode 0600 if made, without following a link and without waiting on a pipe that lies
// there instead.
func openRegular(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errBusy
	}
	return err
}

// privateDir makes a folder of our own, or checks that the one there is: no link, ours, and closed to others' writes.
func privateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() || !(user{uid: os.Geteuid()}).owns(info) || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must be a folder, no link, owned by uid %d and writable for nobody else", path, os.Geteuid())
	}
	return nil
}
