package workspaces

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxMeasured bounds the entries of a workspace that are looked at.
const maxMeasured = 200_000

// folders is a workspace whose folders are opened as such: a pipe that user code puts into a folder's place would be waited
// for.
type folders struct {
	fs.FS
	root *os.Root
}

// ReadDir implements fs.ReadDirFS.
func (f folders) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := f.root.Open(name + "/.")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxMeasured)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// Measure adds up what k's workspace takes on its disk, in bytes, as far as it can be looked at; the error is fs.ErrNotExist when
// there is none. User code works in it meanwhile, so no link is followed and nothing is believed to stay.
func (w *Folders) Measure(ctx context.Context, k Key) (size int64, err error) {
	name, ok := w.lookup(k)
	if !ok {
		return 0, fs.ErrNotExist // and never that of all workspaces
	}
	return measure(ctx, filepath.Join(w.root, name))
}

func measure(ctx context.Context, dir string) (size int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	seen := 0
	err = fs.WalkDir(folders{root.FS(), root}, ".", func(path string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case seen > maxMeasured:
			return fs.SkipAll
		case err != nil:
			return nil // it went, or cannot be read
		}
		if info, err := d.Info(); err == nil {
			size += diskSize(info)
		}
		return nil
	})
	return size, err
}
