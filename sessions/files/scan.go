package files

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Scan is what the files of a workspace looked like at some time, by path. Hidden files and caches are not in it.
type Scan map[string]Stamp

// Stamp is what tells that a file is another than before.
type Stamp struct {
	modified, size int64
	inode          uint64
}

// Change is one file that a cell has written or deleted.
type Change struct {
	Path string `json:"path"`
	// New tells that there was no file of that name before.
	New     bool  `json:"new"`
	Deleted bool  `json:"deleted,omitempty"`
	Size    int64 `json:"size"`
}

// Bounds of one scan.
const (
	maxScanned  = 2000
	maxScanning = 100 * time.Millisecond
)

// Scan looks at all files; ok is false where there are too many.
func (f *Folder) Scan() (s Scan, ok bool) {
	s = Scan{}
	w := walk{root: f.root, left: maxScanned, until: time.Now().Add(maxScanning), follow: isWork}
	w.visit = func(dir *os.Root, name, full string) bool {
		info, err := dir.Lstat(name)
		if err != nil {
			return false
		}
		if info.Mode().IsRegular() {
			s[full] = stampOf(info)
		}
		return info.IsDir()
	}
	w.run(".")
	return s, !w.partial
}

// isWork tells whether a name is one that somebody chose for his own work.
func isWork(name string) bool {
	return !strings.HasPrefix(name, ".") && name != "__pycache__" && name != "node_modules"
}

func stampOf(info os.FileInfo) Stamp {
	return Stamp{modified: info.ModTime().UnixNano(), size: info.Size(), inode: inodeOf(info)}
}

// Stamp returns how one file looks now.
func (f *Folder) Stamp(name string) (stamp Stamp, ok bool) {
	info, err := f.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return Stamp{}, false
	}
	return stampOf(info), true
}

// Gone tells whether there is nothing of a name. What is hidden by now, or has become something else than a file, is not gone.
func (f *Folder) Gone(name string) bool {
	_, err := f.root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// Since returns the files that are not as they were before, the new ones first, the deleted ones last, then by path.
func (s Scan) Since(before Scan) []Change {
	var changes []Change
	for path, stamp := range s {
		if old, there := before[path]; old != stamp {
			changes = append(changes, Change{Path: path, New: !there, Size: stamp.size})
		}
	}
	for path := range before {
		if _, there := s[path]; !there {
			changes = append(changes, Change{Path: path, Deleted: true})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Path, b.Path))
	})
	return changes
}

func (c Change) rank() int {
	switch {
	case c.New:
		return 0
	case c.Deleted:
		return 2
	}
	return 1
}

// Before returns the files that were last written before a time.
func (s Scan) Before(at time.Time) Scan {
	before := Scan{}
	for path, stamp := range s {
		if stamp.modified < at.UnixNano() {
			before[path] = stamp
		}
	}
	return before
}

// Forget takes a file out of the scan, or a folder with all that is in it.
func (s Scan) Forget(path string) {
	for one := range s {
		if one == path || strings.HasPrefix(one, path+"/") {
			delete(s, one)
		}
	}
}

// Know puts a file into the scan.
func (s Scan) Know(path string, stamp Stamp) {
	if !slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return !isWork(part) }) {
		s[path] = stamp
	}
}
