package sessions

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// labels reads what stands beside the folders, by their names. It looks again where a label has just gone: another process
// may have put its session's files under another one. Whole tells that all were read that were there.
func (w *workspaces) labels() (labels map[string]label, whole bool, err error) {
	const rounds = 8
	for round := 0; !whole && round < rounds; round++ {
		if labels, whole, err = w.readLabels(); err != nil {
			break
		}
	}
	return labels, whole, err
}

func (w *workspaces) readLabels() (labels map[string]label, whole bool, err error) {
	paths, err := filepath.Glob(filepath.Join(w.root, "*.json"))
	labels, whole = map[string]label{}, true
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		l, err := w.readAgain(name)
		if errors.Is(err, fs.ErrNotExist) {
			whole = false
			continue
		}
		if err != nil || !folderName.MatchString(name) {
			w.log.Warn("workspace label is not readable, its folder is left alone", "path", path, "error", err)
			continue
		}
		labels[name] = l
	}
	w.seen.Range(func(name, _ any) bool {
		if _, ok := labels[name.(string)]; !ok {
			w.seen.Delete(name)
		}
		return true
	})
	return labels, whole, err
}

// seenLabel is a label with the file that it was read from. Labels are replaced and never changed: see write.
type seenLabel struct {
	file  fs.FileInfo
	label label
}

// readAgain is read for who reads all labels, of which hardly any is another one than before.
func (w *workspaces) readAgain(name string) (label, error) {
	file, err := os.Lstat(w.labelPath(name))
	if err != nil {
		return label{}, err
	}
	if known, ok := w.seen.Load(name); ok {
		known := known.(seenLabel)
		if os.SameFile(known.file, file) && known.file.Size() == file.Size() && known.file.ModTime().Equal(file.ModTime()) {
			return w.withLink(name, known.label), nil
		}
	}
	l, err := w.readFile(name)
	if err == nil {
		w.seen.Store(name, seenLabel{file, l}) // of an older file, perhaps: then it is read once more
	}
	return w.withLink(name, l), err
}

// read reads one label.
func (w *workspaces) read(name string) (label, error) {
	l, err := w.readFile(name)
	return w.withLink(name, l), err
}

func (w *workspaces) readFile(name string) (l label, err error) {
	data, err := os.ReadFile(w.labelPath(name))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err == nil && !l.Spare {
		err = ValidateID(l.ID)
	}
	return l, err
}

// withLink is a session's label with what the link says from where its files come. The label is read first: the link is there
// before it, and goes when all files have come.
func (w *workspaces) withLink(name string, l label) label {
	if l.ID == "" {
		return l
	}
	if from, err := os.Readlink(w.fromPath(name)); err == nil && folderName.MatchString(from) {
		l.From = from
	}
	return l
}
