package history

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	// sweepFiles bounds the files that are removed in one transaction.
	sweepFiles = 200
	// halfWritten is how old a file must be that was never renamed into place, to be nobody's any more.
	halfWritten = time.Hour
)

// blobFile is the name of a file in its place.
var blobFile = regexp.MustCompile(`^[0-9a-f]{64}$`)

// sweep removes the files that no row names: outputs whose commit never came, and deleted ones whose process ended before
// it removed their files.
func (s *Store) sweep() {
	err := s.sweepFolder()
	if err != nil && !s.closed.Load() {
		s.log.Warn("files of deleted outputs may be left in the data folder; the next start looks again", "error", err)
	}
}

// sweepFolder looks for such files beside whatever else goes on. What it finds is only suspected: reclaim looks again
// under the database's lock, and who is about to name one finds out under the same lock that it is gone.
func (s *Store) sweepFolder() error {
	var suspects []string
	err := filepath.WalkDir(s.blobs.root, func(path string, file fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // nothing has ever been written here, or it was removed meanwhile
		case s.closed.Load():
			return errClosed
		case err != nil || file.IsDir():
			return err
		case strings.HasPrefix(file.Name(), newFile):
			return removeOld(path, file)
		case !blobFile.MatchString(file.Name()):
			return nil // none of ours
		}
		var named bool
		err = s.read.QueryRow(selectNamed, file.Name()).Scan(&named)
		if err == nil && !named {
			suspects = append(suspects, file.Name())
		}
		if err == nil && len(suspects) == sweepFiles {
			err, suspects = s.reclaim(suspects), nil
		}
		return err
	})
	return errors.Join(err, s.reclaim(suspects))
}

// reclaim has the writer remove files that no row names.
func (s *Store) reclaim(suspects []string) error {
	if len(suspects) == 0 {
		return nil
	}
	return s.writer.submit(context.Background(), func(w *writer) error {
		w.freed = append(w.freed, suspects...)
		return nil
	})
}

// removeOld removes a file that somebody began to write, unless that was not long ago.
func removeOld(path string, file fs.DirEntry) error {
	info, err := file.Info()
	if err == nil && time.Since(info.ModTime()) > halfWritten {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has been renamed, or somebody else sweeps too
	}
	return err
}
