package history

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cellblock/internal/fault"
)

// blobLimit is the largest body, in bytes, that stands in the database itself.
const blobLimit = 64 << 10

// newFile begins the name of a file until it is whole.
const newFile = "new-"

// blobs are the files that hold what is too large for the database, each named by the SHA-256 of its content, so that
// equal ones are one file and damage is noticed.
type blobs struct{ root string }

func blobName(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (b blobs) path(name string) string { return filepath.Join(b.root, name[:2], name[2:4], name) }

// put makes sure that there is a file with a body, and that it outlives a loss of power.
func (b blobs) put(name string, body []byte) error {
	path := b.path(name)
	if b.has(name, len(body)) {
		return nil
	}
	if err := b.makeFolders(filepath.Dir(path)); err != nil {
		return err
	}
	return writeWhole(path, body)
}

// has tells whether the file is there, whole by its length.
func (b blobs) has(name string, size int) bool {
	info, err := os.Stat(b.path(name))
	return err == nil && info.Size() == int64(size)
}

// makeFolders makes both levels above a file. The names of new ones are forced to the disk like that of a file.
func (b blobs) makeFolders(dir string) error {
	for _, d := range []string{b.root, filepath.Dir(dir), dir} {
		err := os.Mkdir(d, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := syncFolder(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// writeWhole writes a file that is there with all its content or not at all, and forces it to the disk.
func writeWhole(path string, body []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), newFile+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // once it is renamed there is nothing to remove
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// get returns what a file holds, if that is still what was put there.
func (b blobs) get(name string) ([]byte, error) {
	const hint = "restore the folder blobs of the data folder from a backup; other outputs are not touched by this"
	if len(name) != 2*sha256.Size {
		return nil, fault.New(fault.Unavailable, "an output's file has the impossible name %q", name).WithHint(hint)
	}
	body, err := os.ReadFile(b.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Unavailable, "an output's file is missing from the data folder: blobs/%s/%s/%s",
			name[:2], name[2:4], name).WithHint(hint)
	case err != nil:
		return nil, explain("an output's file could not be read", err)
	case blobName(body) != name:
		return nil, fault.New(fault.Unavailable, "an output's file is damaged: blobs/%s/%s/%s", name[:2], name[2:4], name).
			WithHint(hint)
	}
	return body, nil
}

// remove deletes a file. One that is not there is as good as deleted.
func (b blobs) remove(name string) error {
	err := os.Remove(b.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("an output's file stays: %w", err)
	}
	return nil
}
