package files

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"cellblock/internal/fault"
)

// Write puts a file in its place in one step: a reader sees the old one or the new one. Folders on the way are made. A link
// is replaced, not followed. It tells whether nothing was there before.
func (f *Folder) Write(name string, content []byte) (e Entry, created bool, err error) {
	dir, name, err := f.folderFor(name)
	if err != nil {
		return Entry{}, false, err
	}
	defer dir.Close()
	base := path.Base(name)
	mode, created, err := replaceable(dir, base, name)
	if err == nil {
		err = f.put(dir, base, mode, content)
	}
	if err != nil {
		return Entry{}, false, explain(name, err)
	}
	return f.written(dir, base, name, created)
}

// folderFor opens the folder of a file that is to be written, made if need be, and returns the file's clean path. From here on
// everything happens in this one folder, wherever user code may move it meanwhile.
func (f *Folder) folderFor(name string) (dir *os.Root, clean string, err error) {
	if name, err = cleanNamed(name); err != nil {
		return nil, "", err
	}
	if name == "." {
		return nil, "", fault.New(fault.Invalid, "path: is the workspace itself, not a file in it")
	}
	if err = f.makeFolders(path.Dir(name)); err == nil {
		dir, err = openDir(f.root, path.Dir(name))
	}
	if isNoFolder(err) {
		return nil, "", fault.New(fault.Invalid, "%q cannot be written: what stands for its folder is a file", name).
			WithHint("choose another folder, or delete_file that file first")
	}
	if err != nil {
		return nil, "", explain(name, err)
	}
	return dir, name, nil
}

// written describes a file that has just been written.
func (f *Folder) written(dir *os.Root, base, name string, created bool) (Entry, bool, error) {
	info, err := dir.Lstat(base)
	if err != nil {
		return Entry{}, false, explain(name, err)
	}
	return entryIn(dir, base, name, info), created, nil
}

// makeFolders makes what is missing of a path of folders.
func (f *Folder) makeFolders(dir string) error {
	made := ""
	for part := range strings.SplitSeq(dir, "/") {
		made = path.Join(made, part)
		if made == "." {
			continue
		}
		err := f.root.Mkdir(made, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if os.Geteuid() == 0 {
			// User code may have put something else of its own here, and gets what it has.
			if err := f.root.Lchown(made, f.uid, f.gid); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceable returns the permissions that a file is written with: those of the file that it replaces.
func replaceable(dir *os.Root, base, name string) (mode fs.FileMode, created bool, err error) {
	const usual = 0o644
	info, err := dir.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return usual, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	switch kindOf(info.Mode()) {
	case File:
		return info.Mode().Perm(), false, nil
	case Link:
		return usual, false, nil
	case Dir:
		return 0, false, fault.New(fault.Invalid, "%q is a folder", name).WithHint("give the name of a file in it")
	}
	return 0, false, notAFile(name, info.Mode())
}

// put writes a file beside its place and moves it there.
func (f *Folder) put(dir *os.Root, base string, mode fs.FileMode, content []byte) error {
	temp := ".cellblock-" + rand.Text()
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(content); err == nil {
		err = f.hand(dir, file, temp, base, mode)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = dir.Remove(temp)
	}
	return err
}

// hand gives a file to the workspace's user, and its place.
func (f *Folder) hand(dir *os.Root, file *os.File, temp, base string, mode fs.FileMode) error {
	if os.Geteuid() == 0 {
		if err := file.Chown(f.uid, f.gid); err != nil {
			return err
		}
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	return dir.Rename(temp, base)
}

// Delete deletes a file, a link or an empty folder; with recursive, a folder with all that is in it.
func (f *Folder) Delete(name string, recursive bool) (Entry, error) {
	name, err := cleanNamed(name)
	if err != nil {
		return Entry{}, err
	}
	e, err := f.Stat(name)
	if err != nil {
		return Entry{}, err
	}
	if e.Path == "." {
		return Entry{}, fault.New(fault.Invalid, "path: is the workspace itself, not something in it").
			WithHint("close_session with delete_files deletes all of it")
	}
	err = f.root.Remove(e.Path)
	if err == nil || e.Kind != Dir {
		return e, explainNil(e.Path, err)
	}
	if !recursive {
		if errors.Is(err, fs.ErrPermission) {
			return Entry{}, explain(e.Path, err)
		}
		return Entry{}, fault.New(fault.Conflict, "%q is a folder that is not empty", e.Path).
			WithHint("pass recursive=true to delete it with all that is in it")
	}
	return e, explainNil(e.Path, f.deleteAll(e.Path))
}

func explainNil(name string, err error) error {
	if err == nil {
		return nil
	}
	return explain(name, err)
}
