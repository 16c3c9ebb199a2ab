package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// archive is what a backup is written to: a folder or a tar file, made in a folder of its own.
type archive interface {
	// add writes an entry. A file has exactly as much content as its header says.
	add(h *tar.Header, content io.Reader) error
	// place is where somebody else writes a file, and placed adds it, with what the header says of it.
	place(name string) string
	placed(h *tar.Header) error
	// path is what is to become the backup, once it is closed.
	path() string
	close() error
	// abandon is close for what is not whole, and does not look so.
	abandon()
}

// folderArchive writes entries as they are. It follows no link of what it writes: some of it is users' work.
type folderArchive struct {
	dir  string
	root *os.Root
	dirs []*tar.Header // whose mode and time are set in the end: they may say that nothing may be written there
}

func newFolderArchive(stage string) (*folderArchive, error) {
	dir := filepath.Join(stage, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	return &folderArchive{dir: dir, root: root}, err
}

func (a *folderArchive) abandon()                   { _ = a.root.Close() }
func (a *folderArchive) path() string               { return a.dir }
func (a *folderArchive) place(name string) string   { return filepath.Join(a.dir, name) }
func (a *folderArchive) placed(h *tar.Header) error { return a.finish(h.Name, h) }

func (a *folderArchive) add(h *tar.Header, content io.Reader) error {
	name := filepath.Clean(h.Name)
	switch h.Typeflag {
	case tar.TypeDir:
		a.dirs = append(a.dirs, h)
		if name == "." {
			return nil
		}
		return a.root.Mkdir(name, 0o700)
	case tar.TypeSymlink:
		if err := a.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return a.own(name, h)
	}
	f, err := a.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return a.finish(name, h)
}

// own gives an entry its owner, where that can be done.
func (a *folderArchive) own(name string, h *tar.Header) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return a.root.Lchown(name, h.Uid, h.Gid)
}

// finish gives an entry its owner, mode and time.
func (a *folderArchive) finish(name string, h *tar.Header) error {
	err := errors.Join(a.own(name, h), a.root.Chmod(name, fs.FileMode(h.Mode).Perm()))
	if err == nil && !h.ModTime.IsZero() {
		err = a.root.Chtimes(name, time.Now(), h.ModTime)
	}
	return err
}

func (a *folderArchive) close() error {
	var err error
	for _, h := range slices.Backward(a.dirs) {
		err = errors.Join(err, a.finish(filepath.Clean(h.Name), h))
	}
	return errors.Join(err, a.root.Close())
}

// tarArchive writes entries one behind another.
type tarArchive struct {
	stage string
	tar   *tar.Writer
}

// fileArchive is one file.
type fileArchive struct {
	tarArchive
	file *os.File
}

// pipeArchive goes to whoever reads it at once.
type pipeArchive struct {
	tarArchive
	lock *flock.Flock // of the stage
}

func newFileArchive(stage string) (*fileArchive, error) {
	f, err := os.OpenFile(filepath.Join(stage, "backup.tar"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &fileArchive{tarArchive{stage, tar.NewWriter(f)}, f}, nil
}

func (a *tarArchive) place(name string) string { return filepath.Join(a.stage, name) }

func (a *tarArchive) placed(h *tar.Header) error {
	f, err := os.Open(a.place(h.Name))
	if err != nil {
		return err
	}
	defer f.Close()
	return a.add(h, f)
}

func (a *tarArchive) add(h *tar.Header, content io.Reader) error {
	if err := a.tar.WriteHeader(h); err != nil || content == nil {
		return err
	}
	_, err := io.Copy(a.tar, content)
	return err
}

func (a *fileArchive) path() string { return a.file.Name() }
func (a *fileArchive) close() error { return errors.Join(a.tar.Close(), a.file.Sync(), a.file.Close()) }
func (a *fileArchive) abandon()     { _ = a.file.Close() }

func (a *pipeArchive) path() string { return "" } // there is nothing to give a name
func (a *pipeArchive) close() error { return errors.Join(a.tar.Close(), a.lock.Close()) }

// incomplete names an entry that only an archive has which is not whole.
const incomplete = "INCOMPLETE"

// abandon ends in an entry: programs that read archives take one that ends between two for whole.
func (a *pipeArchive) abandon() {
	_ = a.lock.Close()
	_ = a.tar.WriteHeader(&tar.Header{Name: incomplete, Mode: 0o600, Size: 1})
}

// headerOf describes a file by its path in the data folder. Owners are numbers: the names are this machine's.
func headerOf(info fs.FileInfo, name, link string) (*tar.Header, error) {
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return nil, err
	}
	h.Name, h.Uname, h.Gname = filepath.ToSlash(name), "", ""
	h.Mode &= 0o777
	if info.IsDir() {
		h.Name += "/"
	}
	return h, nil
}
