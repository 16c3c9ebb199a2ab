// Package files reads, writes and lists a workspace while user code works in it.
//
// That code may swap any name for a link or a pipe between two of our steps, so nothing here rests on a check that was made
// before: everything goes through an os.Root, which no link and no ".." leaves, in whatever moment it appears; nothing is
// opened in a way that waits for somebody; and what was opened is looked at again before it is read. Special files (pipes,
// sockets, devices) are listed, and neither read nor replaced.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
)

// Inside is the workspace's path in a kernel's own sight. A caller may write it before a file's path.
const Inside = "/workspace"

// Folder is an open workspace. Its methods may be called concurrently; their paths are relative to it, with slashes.
type Folder struct {
	root     *os.Root
	uid, gid int
}

// Kind is what something in a workspace is.
type Kind string

// The kinds.
const (
	File    Kind = "file"
	Dir     Kind = "folder"
	Link    Kind = "link"
	Special Kind = "special"
)

// Entry is one thing in a workspace.
type Entry struct {
	Path     string
	Kind     Kind
	Size     int64 // of a file
	Modified time.Time
	// Target is where a link points to, as it is written; Outside tells that it is not followed because that is not in the
	// workspace.
	Target  string
	Outside bool
}

// Open opens a workspace. What is made in it will belong to uid and gid, if the server can give things away.
func Open(dir string, uid, gid int) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root: root, uid: uid, gid: gid}, nil
}

// openDir opens a folder as a root of its own. OpenRoot alone waits where its last element is a pipe that nobody writes to;
// what is on the way can only be a folder, or a link to one.
func openDir(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(name + "/.") }

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// maxPath is the longest path, in bytes, that is accepted.
const maxPath = 1024

// Clean returns a caller's path as this package writes it: relative to the workspace, "." for itself. It is Invalid if it
// leads out of it.
func Clean(name string) (string, error) {
	switch {
	case len(name) > maxPath:
		return "", fault.New(fault.Invalid, "path: %d bytes, at most %d", len(name), maxPath)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return "", fault.New(fault.Invalid, "path: %q is not a path", name)
	}
	clean := path.Clean(name)
	if rest, ok := strings.CutPrefix(clean, Inside); ok && (rest == "" || rest[0] == '/') {
		clean = path.Clean("." + rest)
	}
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fault.New(fault.Invalid, "path: %q is not in the session's workspace", name).
			WithHint("give it relative to %s; only what lies there can be reached", Inside)
	}
	return clean, nil
}

// cleanNamed is Clean for a path that must name something in the workspace.
func cleanNamed(name string) (string, error) {
	if name == "" {
		return "", fault.New(fault.Invalid, "path: is empty").WithHint("give it relative to %s; list_files names what there is", Inside)
	}
	return Clean(name)
}

// Stat describes one thing; a link as a link.
func (f *Folder) Stat(name string) (Entry, error) {
	name, err := Clean(name)
	if err != nil {
		return Entry{}, err
	}
	info, err := f.root.Lstat(name)
	if err != nil {
		return Entry{}, explain(name, err)
	}
	return entryIn(f.root, name, name, info), nil
}

// entryIn describes what is called name in root.
func entryIn(root *os.Root, name, full string, info fs.FileInfo) Entry {
	e := Entry{Path: full, Kind: kindOf(info.Mode()), Modified: info.ModTime()}
	switch e.Kind {
	case File:
		e.Size = info.Size()
	case Link:
		e.Target, _ = root.Readlink(name)
		_, inside := pointsTo(full, e.Target)
		e.Outside = !inside
	}
	return e
}

// pointsTo returns where in the workspace a link leads to that is called name, by one step. It is false for one that leads
// out of it.
func pointsTo(name, target string) (to string, inside bool) {
	if rest, ok := strings.CutPrefix(path.Clean(target), Inside); ok && (rest == "" || rest[0] == '/') {
		return path.Clean("." + rest), true
	}
	to = path.Join(path.Dir(name), target)
	return to, !path.IsAbs(target) && to != ".." && !strings.HasPrefix(to, "../")
}

// Bounds of one path through absolute links: how many names are looked at on the way, and how many parts it may have, each of
// which is opened for each name.
const (
	maxSteps = 400
	maxParts = 64
)

// behindLinks returns where a path leads to if absolute links into the workspace are followed, as code sees them: an
// os.Root follows none that are absolute. It is only where to look: what is opened is opened through the root. The path itself
// is returned where that is not told by the links' texts alone. The error is that of a path through too many links.
func (f *Folder) behindLinks(name string) (string, error) {
	at, from := name, 0 // at[:from] leads through no link
	for range maxSteps {
		if from > len(at) {
			return at, nil
		}
		if strings.Count(at, "/") >= maxParts {
			return name, nil
		}
		end := from + strings.IndexByte(at[from:]+"/", '/')
		target, err := f.root.Readlink(at[:end])
		switch {
		case errors.Is(err, syscall.EINVAL): // no link
			from = end + 1
			continue
		case err != nil: // who opens it hears of it
			return at, nil
		}
		to, inside := pointsTo(at[:end], target)
		if !inside || climbs(target) {
			return name, nil
		}
		at, from = path.Join(to, at[end:]), 0
	}
	return name, syscall.ELOOP
}

// climbs tells whether a link's target has ".." behind another part, whose folder is another one if that part is a link, too.
func climbs(target string) bool {
	for strings.HasPrefix(target, "../") {
		target = strings.TrimLeft(target[2:], "/")
	}
	return target != ".." && slices.Contains(strings.Split(target, "/"), "..")
}

func kindOf(mode fs.FileMode) Kind {
	switch {
	case mode.IsRegular():
		return File
	case mode.IsDir():
		return Dir
	case mode&fs.ModeSymlink != 0:
		return Link
	}
	return Special
}

// OpenFile opens a file for reading. The caller closes it. Links are followed within the workspace.
func (f *Folder) OpenFile(name string) (*os.File, Entry, error) {
	name, err := cleanNamed(name)
	if err != nil {
		return nil, Entry{}, err
	}
	at := name
	info, err := f.root.Stat(at)
	if err != nil && escapes(err) {
		if at, err = f.behindLinks(name); err == nil {
			info, err = f.root.Stat(at)
		}
	}
	if err == nil {
		err = readable(name, info)
	}
	if err != nil {
		return nil, Entry{}, f.didYouMean(name, explain(name, err))
	}
	// Whatever it has become meanwhile: a pipe that nobody writes to does not hold this up.
	file, err := f.root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, Entry{}, explain(name, err)
	}
	if info, err = file.Stat(); err == nil {
		err = readable(name, info)
	}
	if err != nil {
		_ = file.Close()
		return nil, Entry{}, explain(name, err)
	}
	return file, Entry{Path: name, Kind: File, Size: info.Size(), Modified: info.ModTime()}, nil
}

func readable(name string, info fs.FileInfo) error {
	switch kindOf(info.Mode()) {
	case File:
		return nil
	case Dir:
		return fault.New(fault.Invalid, "%q is a folder", name).WithHint("list_files shows what is in it")
	}
	return notAFile(name, info.Mode())
}

// notAFile is the error for a special file.
func notAFile(name string, mode fs.FileMode) error {
	what := "a device"
	switch {
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return fault.New(fault.Invalid, "%q is %s, and only files can be read and written", name, what).
		WithHint("delete_file removes it")
}

// maxCompared bounds the names of a folder that a misspelt one is compared with.
const maxCompared = 500

// didYouMean adds to an error which says that there is no such file the one in its folder that was probably meant.
func (f *Folder) didYouMean(name string, err error) error {
	missing, ok := errors.AsType[*fault.Error](err)
	if !ok || missing.Kind != fault.NotFound {
		return err
	}
	folder, openErr := f.root.OpenFile(path.Dir(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe
	if openErr != nil {
		return err
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxCompared)
	names = slices.DeleteFunc(names, func(n string) bool { return !utf8.ValidString(n) }) // no path of a caller's is one
	if near := nearest.Of(path.Base(name), names); near != "" {
		return missing.WithHint("did you mean %q? %s", path.Join(path.Dir(name), near), missing.Hint)
	}
	return err
}

// explain makes an error of a file operation one for callers: it names no path but theirs.
func explain(name string, err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	cause := Pathless(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing := fault.New(fault.NotFound, "there is no %q in the session's workspace", name)
		missing.Err = fs.ErrNotExist
		return missing.WithHint("list_files names what there is")
	case isNoFolder(err):
		return fault.New(fault.NotFound, "there is no %q in the session's workspace", name).
			WithHint("list_files names what there is")
	case escapes(err):
		return fault.New(fault.Invalid, "%q is or lies behind a link that is absolute or leads out of the workspace, which is not followed here", name).
			WithHint("name the file itself, relative to %s", Inside)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Conflict, "%q cannot be reached, because its permissions or its folder's forbid it", name).
			WithHint("let code change them: os.chmod")
	case errors.Is(err, syscall.ELOOP):
		return fault.New(fault.Invalid, "%q is or lies behind a link that leads in a circle, or through more links than are followed", name).
			WithHint("name the file itself; delete_file removes the link, and nothing else")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault.New(fault.Invalid, "path: %q: %w", name, cause)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.New(fault.Unavailable, "%q cannot be written: %w", name, cause).
			WithHint("delete what is not needed; the operator can make room")
	}
	return fault.New(fault.Unavailable, "%q: %w", name, cause)
}

// isNoFolder tells whether something on the way of a path is a file.
func isNoFolder(err error) bool {
	return err != nil && (errors.Is(err, syscall.ENOTDIR) || Pathless(err).Error() == "not a directory") // os.Root's own
}

// Pathless is an error of a file operation without the host's paths, which are no caller's business.
func Pathless(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// escapes tells whether os.Root refused to leave the workspace. Its error has no name.
func escapes(err error) bool { return Pathless(err).Error() == "path escapes from parent" }
