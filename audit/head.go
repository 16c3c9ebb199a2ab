package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// head says how far the log has been written.
type head struct {
	// Lines is the number of the last line, and Last its seal.
	Lines uint64 `json:"lines"`
	Last  seal   `json:"last"`
	// First is the number of the first line of the file that is written, and Size that file's.
	First uint64 `json:"first"`
	Size  int64  `json:"size"`
}

// next is where the next line goes.
func (h head) next() place { return place{Seq: h.Lines + 1, Before: h.Last} }

// names are the files of a log.
type names struct{ path string }

func (n names) log() string  { return n.path }
func (n names) head() string { return n.path + ".head" }
func (n names) lock() string { return n.path + ".lock" }

// full is the name of a file that is written no more, by the number of its first line.
func (n names) full(first uint64) string {
	ext := filepath.Ext(n.path)
	return fmt.Sprintf("%s-%012d%s", strings.TrimSuffix(n.path, ext), first, ext)
}

// files are the log's, in the order of their lines; the one that is written is the last.
func (n names) files() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(n.path))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		path := filepath.Join(filepath.Dir(n.path), entry.Name())
		var first uint64
		ext := filepath.Ext(n.path)
		prefix := strings.TrimSuffix(n.path, ext) + "-"
		digits, ok := strings.CutPrefix(strings.TrimSuffix(path, ext), prefix)
		if _, err := fmt.Sscanf(digits, "%d", &first); ok && err == nil && n.full(first) == path {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	if _, err := os.Lstat(n.path); err == nil {
		found = append(found, n.path)
	}
	return found, nil
}

// headSize is what the head takes on the disk, in bytes: a sector, which is written whole or not at all, so that it can be
// written in its place. A new file under the old name would cost a thousand times as much, once for every call.
const headSize = 512

// readHead returns the head, and fs.ErrNotExist if there is none.
func (n names) readHead(key []byte) (h head, err error) {
	text, err := os.ReadFile(n.head())
	if err != nil {
		return head{}, err
	}
	if _, err = unsealed(key, bytes.TrimRight(text, "\n"), &h); err != nil {
		return head{}, fmt.Errorf("%s: %w", n.head(), err)
	}
	return h, nil
}

// writeHead replaces the head, whole. The caller holds the lock.
func (n names) writeHead(key []byte, h head, durable bool) (err error) {
	text, _, err := sealed(key, h)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(n.head(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text = append(text, bytes.Repeat([]byte("\n"), headSize-len(text))...)
	if _, err = f.WriteAt(text, 0); err == nil && durable {
		err = f.Sync()
	}
	return err
}

// exists reports whether there is a file, of the size if that is not negative.
func exists(path string, size int64) bool {
	info, err := os.Lstat(path)
	return err == nil && (size < 0 || info.Size() == size) || err != nil && !errors.Is(err, fs.ErrNotExist)
}
