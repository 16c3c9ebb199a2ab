package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"

	"cellblock/internal/fault"
)

// A large file comes in parts. They gather beside its place, in a hidden file that the sender's word names, which takes the
// place when all are there.

const (
	uploadPrefix = ".cellblock-upload-"
	// uploadAge is how long an upload may wait for its next part. One that nobody goes on with makes way for the next one.
	uploadAge = time.Hour
)

var uploadWord = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Add adds a part to the file that comes under a word, and returns how large it is by now. Folders on the way are made.
func (f *Folder) Add(name, word string, part []byte) (size int64, err error) {
	dir, name, err := f.place(name, word)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	gathered, err := openUpload(dir, uploadPrefix+word, os.O_CREATE|os.O_APPEND)
	if err != nil {
		return 0, explain(name, err)
	}
	defer gathered.Close()
	info, err := gathered.Stat()
	if err != nil {
		return 0, explain(name, err)
	}
	if info.Size() == 0 {
		forgetUploads(dir, time.Now().Add(-uploadAge))
	}
	if _, err := gathered.Write(part); err != nil {
		_ = gathered.Truncate(info.Size()) // a part that did not fit is sent again, as a whole
		return 0, explain(name, err)
	}
	return info.Size() + int64(len(part)), nil
}

// Finish puts what has come under a word in its place in one step, as Write does.
func (f *Folder) Finish(name, word string) (e Entry, created bool, err error) {
	dir, name, err := f.place(name, word)
	if err != nil {
		return Entry{}, false, err
	}
	defer dir.Close()
	gathered, err := openUpload(dir, uploadPrefix+word, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, false, fault.New(fault.NotFound, "upload: nothing has come as %q for %q", word, name).
			WithHint("send the parts first, with the same path; what waits for longer than an hour may be gone")
	}
	if err != nil {
		return Entry{}, false, explain(name, err)
	}
	defer gathered.Close()
	base := path.Base(name)
	mode, created, err := replaceable(dir, base, name)
	if err == nil {
		err = f.hand(dir, gathered, uploadPrefix+word, base, mode)
	}
	if err != nil {
		return Entry{}, false, explain(name, err)
	}
	return f.written(dir, base, name, created)
}

// place opens the folder that a file's parts gather in, and returns the file's clean path.
func (f *Folder) place(name, word string) (dir *os.Root, clean string, err error) {
	if !uploadWord.MatchString(word) {
		return nil, "", fault.New(fault.Invalid, "upload: %q is no word of 1 to 64 letters, digits, - and _", word)
	}
	return f.folderFor(name)
}

// openUpload opens a hidden file for writing, if it is one: user code may have put something else there.
func openUpload(dir *os.Root, hidden string, flags int) (*os.File, error) {
	file, err := dir.OpenFile(hidden, flags|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notAFile(hidden, info.Mode())
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// forgetUploads removes what nobody has gone on with since some time.
func forgetUploads(dir *os.Root, since time.Time) {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), uploadPrefix) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.ModTime().Before(since) {
			_ = dir.Remove(entry.Name())
		}
	}
}
