package files

import (
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"cellblock/internal/fault"
)

// Query says what of a workspace to list.
type Query struct {
	// Path is a folder, or one file; "" is the workspace.
	Path string
	// Glob is what the entries' names must match: "*.csv" in any folder, "data/*" and "**/test_*.py" from Path on. Empty:
	// everything.
	Glob string
	// Flat leaves out what is in folders below.
	Flat bool
	// All has files, too, of which not all parts have come, or which a kernel still writes.
	All bool
	// Most bounds the entries that are returned.
	Most int
}

// Listing is what a workspace holds.
type Listing struct {
	// Entries come folder by folder, those at the top first, by name.
	Entries []Entry
	// Files, Folders and Bytes count all that match, also what Entries leaves out.
	Files, Folders int
	Bytes          int64
	// Partial tells that there is more than was looked at, or something that could not be looked at.
	Partial bool
}

// Bounds of what one listing looks at.
const (
	maxLooked  = 20_000
	maxLooking = 2 * time.Second
)

// List lists a folder with all that is in it. Links are not followed.
func (f *Folder) List(q Query) (Listing, error) {
	var l Listing
	match, err := globOf(q.Glob)
	if err != nil {
		return l, err
	}
	top, err := f.Stat(q.Path)
	if err != nil {
		return l, err
	}
	if top.Kind != Dir {
		l.add(top, q.Most)
		return l, nil
	}
	w := walk{root: f.root, left: maxLooked, until: time.Now().Add(maxLooking), follow: func(name string) bool { return q.All || !unfinished(name) }}
	w.visit = func(dir *os.Root, name, full string) bool {
		info, err := dir.Lstat(name)
		if err != nil {
			return false // it has just been deleted
		}
		e := entryIn(dir, name, full, info)
		if match(strings.TrimPrefix(strings.TrimPrefix(full, top.Path), "/")) {
			l.add(e, q.Most)
		}
		return e.Kind == Dir && !q.Flat
	}
	w.run(top.Path)
	l.Partial = w.partial
	return l, nil
}

// savingPrefix is how files begin that a kernel's variables are saved in, until all are, or loaded from (images.UnfinishedFiles).
const savingPrefix = ".cellblock-variables."

// unfinished tells by its name that a file becomes another one when all of it is there.
func unfinished(name string) bool {
	return strings.HasPrefix(name, uploadPrefix) || strings.HasPrefix(name, savingPrefix)
}

func (l *Listing) add(e Entry, most int) {
	if e.Kind == Dir {
		l.Folders++
	} else {
		l.Files++
		l.Bytes += e.Size
	}
	if len(l.Entries) < most {
		l.Entries = append(l.Entries, e)
	}
}

// walk goes through folders, those at the top first, within bounds.
type walk struct {
	root *os.Root
	// left is how many names may still be looked at, until when.
	left  int
	until time.Time
	// visit is called for each name with the folder that it is in, and tells whether it is a folder; follow tells whether to
	// look at a name at all.
	visit  func(dir *os.Root, name, full string) (isDir bool)
	follow func(name string) bool
	// partial tells that not everything was looked at.
	partial bool
}

func (w *walk) run(from string) {
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if time.Now().After(w.until) {
			w.partial = true
			return
		}
		queue = append(queue, w.folder(queue[0])...)
	}
}

// folder visits what is in one folder and returns the folders among that.
func (w *walk) folder(at string) (folders []string) {
	dir := w.root
	if at != "." {
		// Each folder is a root of its own: what it is called may be something else by now, but never outside.
		var err error
		if dir, err = openDir(w.root, at); err != nil {
			w.partial = true
			return nil
		}
		defer dir.Close()
	}
	names, err := w.names(dir)
	if err != nil {
		w.partial = true
	}
	for _, name := range names {
		if full := path.Join(at, name); w.visit(dir, name, full) {
			folders = append(folders, full)
		}
	}
	return folders
}

// names reads the names in a folder, sorted, as many as may still be looked at.
func (w *walk) names(dir *os.Root) ([]string, error) {
	self, err := dir.OpenFile(".", os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK os tries to set it, and takes it back
	if err != nil {
		return nil, err
	}
	defer self.Close()
	var names []string
	for {
		some, err := self.Readdirnames(256)
		w.left -= len(some)
		for _, name := range some {
			if w.follow(name) {
				names = append(names, name)
			}
		}
		if w.left < 0 || len(some) > 0 && time.Now().After(w.until) {
			w.partial = true
			break
		}
		if err != nil || len(some) == 0 {
			break // io.EOF
		}
	}
	slices.Sort(names)
	return names, nil
}

// globOf returns what tells whether a path matches a pattern.
func globOf(pattern string) (func(string) bool, error) {
	if pattern == "" {
		return func(string) bool { return true }, nil
	}
	pattern = path.Clean(pattern)
	if _, err := path.Match(pattern, ""); err != nil || len(pattern) > maxPath || strings.Count(pattern, "**") > 3 {
		return nil, fault.New(fault.Invalid, "glob: %q is not a pattern", pattern).WithHint("write it like *.csv or data/**/*.csv")
	}
	if !strings.Contains(pattern, "/") {
		return func(name string) bool { ok, _ := path.Match(pattern, path.Base(name)); return ok }, nil
	}
	parts := strings.Split(pattern, "/")
	return func(name string) bool { return matches(parts, strings.Split(name, "/")) }, nil
}

// matches tells whether the parts of a path match those of a pattern, in which "**" stands for any number of folders.
func matches(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for skip := range len(name) + 1 {
				if matches(pattern[1:], name[skip:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, _ := path.Match(pattern[0], name[0]); !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return len(name) == 0
}
