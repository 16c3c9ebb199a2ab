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

// Add adds a part, which begins at an offset, to the file that comes under a word, and returns how large that is by now.
// Folders on the way are made. A part that comes again does no harm; the error is Conflict when one before it is missing.
func (f *Folder) Add(name, word string, offset int64, part []byte) (size int64, err error) {
	dir, name, err := f.place(name, word)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	create := 0
	if offset == 0 {
		create = os.O_CREATE
	}
	gathered, size, err := openUpload(dir, uploadPrefix+word, create)
	if create == 0 && errors.Is(err, fs.ErrNotExist) {
		return 0, incomplete(name, word, 0, offset) // and leaves no empty file behind
	}
	if err != nil {
		return 0, explain(name, err)
	}
	defer gathered.Close()
	if size == 0 {
		forgetUploads(dir, time.Now().Add(-uploadAge))
	}
	if offset > size {
		return 0, incomplete(name, word, size, offset)
	}
	if _, err := gathered.WriteAt(part, offset); err != nil {
		_ = gathered.Truncate(size) // a part that did not fit is sent again, as a whole
		return 0, explain(name, err)
	}
	return max(size, offset+int64(len(part))), nil
}

// incomplete is the error of who goes on, or ends, elsewhere than where what has come ends.
func incomplete(name, word string, size, offset int64) error {
	return fault.New(fault.Conflict, "upload: of %q %d bytes have come as %q, and this goes on at offset %d", name, size, word, offset).
		WithHint("go on at offset %d, or begin again with another word", size)
}

// Finish puts what has come under a word in its place in one step, as Write does. The error is Conflict when that is of
// another size than it should be.
func (f *Folder) Finish(name, word string, size int64) (e Entry, created bool, err error) {
	dir, name, err := f.place(name, word)
	if err != nil {
		return Entry{}, false, err
	}
	defer dir.Close()
	gathered, come, err := openUpload(dir, uploadPrefix+word, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, false, fault.New(fault.NotFound, "upload: nothing has come as %q for %q", word, name).
			WithHint("send the parts first, with the same path; what waits for longer than an hour may be gone")
	}
	if err != nil {
		return Entry{}, false, explain(name, err)
	}
	defer gathered.Close()
	if come != size {
		return Entry{}, false, incomplete(name, word, come, size)
	}
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

// openUpload opens a hidden file for writing, if it is one: user code may have put something else there. Size is how much
// has come.
func openUpload(dir *os.Root, hidden string, flags int) (file *os.File, size int64, err error) {
	file, err = dir.OpenFile(hidden, flags|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notAFile(hidden, info.Mode())
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
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
