// Package secretfile keeps secrets of an installation in files that only the server's user may read. Any number of
// processes may ask for one at once: a file appears whole or not at all, and all of them get the same.
package secretfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cellblock/internal/fault"
)

// maxFile is far above any secret, in bytes.
const maxFile = 256 << 10

// Ensure returns what the file holds. If there is none, it is made of what fresh returns; of several processes that do so,
// one wins. Its errors are those of Read and Replace, and fresh's own.
func Ensure(path string, fresh func() ([]byte, error)) ([]byte, error) {
	data, err := Read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	made, err := fresh()
	if err != nil {
		return nil, err
	}
	if err := create(path, made); err != nil {
		return nil, err
	}
	return Read(path)
}

// Read reads a file that only its owner may read. It returns fs.ErrNotExist (wrapped) if there is none, and Invalid for
// what is no regular file, can be read by others, or belongs to somebody else.
func Read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, failed("read", err)
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, failed("read", err)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, failed("read", err)
	}
	if !os.SameFile(info, opened) { // exchanged since: judge what was opened
		if err := check(path, opened); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, failed("read", err)
	}
	return data, nil
}

func check(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fault.New(fault.Invalid, "%s is not a regular file", path).
			WithHint("Remove it; the next start makes a new one.")
	}
	if !private(info) {
		return fault.New(fault.Invalid, "%s can be read by other users (mode %04o)", path, info.Mode().Perm()).
			WithHint("Type chmod 600 %s; if somebody may have read it, remove it instead and a new one is made.", path)
	}
	if !ours(info) {
		return fault.New(fault.Invalid, "%s belongs to another user", path).
			WithHint("Start the server as the user that owns its data folder, or choose another with --data-dir.")
	}
	return nil
}

// create makes a file with data unless there is one already, which is no error. It appears whole or not at all: a
// link, unlike a rename, does not replace.
func create(path string, data []byte) error {
	temp, err := writeTemp(path, data)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Unavailable, "cannot create %s: %w", path, err).
			WithHint("Choose a folder on a file system with hard links with --data-dir.")
	}
	return nil
}

// Replace makes or replaces a file with data, whole.
func Replace(path string, data []byte) error {
	temp, err := writeTemp(path, data)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return failed("write", err)
	}
	return nil
}

// writeTemp writes data to a new file beside path, mode 0600, and returns its name.
func writeTemp(path string, data []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", failed("write", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(f.Name())
		return "", failed("write", err)
	}
	return f.Name(), nil
}

func failed(verb string, err error) error {
	return fault.New(fault.Unavailable, "cannot %s in the data folder: %w", verb, err).
		WithHint("Let the server's user read and write there, or choose another folder with --data-dir.")
}
