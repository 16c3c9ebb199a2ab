package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"cellblock/images/derived"
	"cellblock/internal/words"
	"cellblock/sessions/history"
	"cellblock/sessions/workspaces"
)

// addDatabase adds the copy of the history, with the owner that the history has.
func (b *backup) addDatabase() error {
	if err := b.addFolders("."); err != nil {
		return err
	}
	source, err := os.Stat(filepath.Join(b.data, history.FileName))
	if err != nil {
		return err
	}
	info, err := os.Stat(b.out.place(history.FileName))
	if err != nil {
		return err
	}
	h, err := headerOf(source, history.FileName, "")
	if err != nil {
		return err
	}
	h.Size, h.ModTime = info.Size(), info.ModTime()
	b.bytes += info.Size()
	return b.out.placed(h)
}

// copyOwn copies a file that the server has written, by its path in the data folder.
func (b *backup) copyOwn(name string) (whole bool, err error) {
	f, err := os.Open(filepath.Join(b.data, name))
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := b.addFolders(filepath.Dir(name)); err != nil {
		return false, err
	}
	return b.copyFile(f, name)
}

// copyOwnLink adds a link of the server's own, if it is there.
func (b *backup) copyOwnLink(name string) error {
	path := filepath.Join(b.data, name)
	to, err := os.Readlink(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return b.addEntry(info, name, to)
}

// copyImageNames copies what owners call their images, which sessions are shown with.
func (b *backup) copyImageNames() error {
	folder := filepath.Join("images", derived.NamesFolder)
	names, err := os.ReadDir(filepath.Join(b.data, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if _, err := b.copyOwn(filepath.Join(folder, name.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// addFolders adds a folder of the server's own, and those above it, unless they were.
func (b *backup) addFolders(name string) error {
	if b.made[name] {
		return nil
	}
	if name != "." {
		if err := b.addFolders(filepath.Dir(name)); err != nil {
			return err
		}
	}
	info, err := os.Stat(filepath.Join(b.data, name))
	if err != nil {
		return err
	}
	b.made[name] = true
	return b.addEntry(info, name, "")
}

// copyFile copies an open file, and tells whether it stayed as it was meanwhile. One that gets shorter, or cannot be read
// on, is filled up with zeros, one that gets longer is cut off.
func (b *backup) copyFile(f *os.File, name string) (whole bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		b.troubles.special++
		return true, nil
	}
	h, err := headerOf(info, name, "")
	if err != nil {
		return false, err
	}
	content := &exactly{from: f, left: info.Size()}
	if err := b.write(h, content); err != nil {
		return false, err
	}
	b.count(info.Size())
	after, err := f.Stat()
	return !content.short && err == nil && after.Size() == info.Size() && after.ModTime().Equal(info.ModTime()), nil
}

// writeError is an error of the backup, where others are of what is copied.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

// exactly reads so many bytes, zeros where there are not so many.
type exactly struct {
	from  io.Reader
	left  int64
	short bool
}

func (e *exactly) Read(p []byte) (n int, err error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), e.left)]
	if !e.short {
		n, _ = e.from.Read(p) // what cannot be read is not there
	}
	if e.short = e.short || n == 0; e.short {
		clear(p)
		n = len(p)
	}
	e.left -= int64(n)
	return n, nil
}

// copyWorkspaces copies the workspaces, each with the label beside it that says whose it is. One from which files were being
// moved when a process was killed has none: the label of the other, or the link beside it, says so, and whoever uses the backup
// goes on with it. It returns those in which nothing is.
func (b *backup) copyWorkspaces(ctx context.Context) (empty []string, err error) {
	files, bytes := b.files, b.bytes
	folders, release, err := workspaces.HoldAll(b.data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	defer func() { _ = release() }()
	labels := 0
	for _, folder := range folders {
		name := filepath.Join("workspaces", folder)
		switch _, err := b.copyOwn(name + ".json"); {
		case err == nil:
			labels++
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		if err := b.copyOwnLink(name + ".from"); err != nil {
			return nil, err
		}
		before := b.files + b.troubles.unreadable
		if err := b.copyWorkspace(ctx, name); err != nil {
			return nil, err
		}
		if b.files+b.troubles.unreadable == before {
			empty = append(empty, name)
		}
	}
	b.say("workspaces: %d, with %s (%s)", labels, words.Count(int64(b.files-files-labels), "file"), words.Bytes(b.bytes-bytes))
	return empty, nil
}

// copyWorkspace copies a folder in which users' code works meanwhile. Nothing outside of it is read, whatever links there
// are; what goes meanwhile is left out.
func (b *backup) copyWorkspace(ctx context.Context, name string) error {
	root, err := os.OpenRoot(filepath.Join(b.data, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	t := newTree()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = b.copyEntry(root, t, entry, path, filepath.Join(name, path))
		}
		switch {
		case errors.As(err, new(writeError)):
			return err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			b.troubles.unreadable++
		}
		if err != nil && entry != nil && entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// tree knows what of a workspace is in a backup. Users' code moves things about while they are read: what was a folder when it was found
// may be a link when it is copied, and a name may be found twice. Neither an archive nor a folder can have what comes of that.
type tree struct {
	folders map[string]bool
	last    string // of the entries, which come folder by folder, by their names
}

func newTree() *tree { return &tree{folders: map[string]bool{}} }

// errMoved is the error of what does not fit to what was copied before.
var errMoved = errors.New("it was moved while it was copied")

// add notes an entry by its path in the workspace, which is "." itself.
func (t *tree) add(name string, folder bool) error {
	if name == t.last || t.folders[name] || name != "." && !t.folders[path.Dir(name)] {
		return errMoved
	}
	if t.last = name; folder {
		t.folders[name] = true
	}
	return nil
}

func (b *backup) copyEntry(root *os.Root, t *tree, entry fs.DirEntry, path, name string) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if err := t.add(path, info.IsDir()); err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return b.addEntry(info, name, "")
	case fs.ModeSymlink:
		link, err := root.Readlink(path)
		if err != nil {
			return err
		}
		return b.addEntry(info, name, link)
	case 0:
		f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe, on which others wait
		if err != nil {
			return err
		}
		defer f.Close()
		whole, err := b.copyFile(f, name)
		if err == nil && !whole {
			b.troubles.changed++
		}
		return err
	}
	b.troubles.special++
	return nil
}

func (b *backup) addEntry(info fs.FileInfo, name, link string) error {
	h, err := headerOf(info, name, link)
	if err != nil {
		return err
	}
	return b.write(h, nil)
}

// write adds an entry; its error is a writeError.
func (b *backup) write(h *tar.Header, content io.Reader) error {
	if err := b.out.add(h, content); err != nil {
		return writeError{err}
	}
	return nil
}
