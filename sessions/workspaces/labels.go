package workspaces

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cellblock/internal/sessionid"
)

// label is what stands in the file beside a workspace.
type label struct {
	Owner    Owner     `json:"owner"`
	ID       string    `json:"session_id"`
	Language string    `json:"language"`
	Created  time.Time `json:"created"`
	// Spare tells that the folder is a pooled kernel's: empty, and no session's yet.
	Spare bool `json:"spare,omitempty"`
	// From is the folder that the session had before, while its files are being moved into this one. It stands in a link beside
	// the label: see announce. Labels that were written by older versions have it themselves.
	From string `json:"from,omitempty"`
}

func (l label) key() Key { return Key{l.Owner, l.ID} }

func (w *Folders) labelPath(name string) string { return filepath.Join(w.root, name+".json") }
func (w *Folders) fromPath(name string) string  { return filepath.Join(w.root, name+".from") }

// labels reads what stands beside the folders, by their names. It looks again where a label has just gone: another process
// may have put its session's files under another one. Whole tells that all were read that were there.
func (w *Folders) labels() (labels map[string]label, whole bool, err error) {
	const rounds = 8
	for round := 0; !whole && round < rounds; round++ {
		if labels, whole, err = w.readLabels(); err != nil {
			break
		}
	}
	return labels, whole, err
}

func (w *Folders) readLabels() (labels map[string]label, whole bool, err error) {
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
func (w *Folders) readAgain(name string) (label, error) {
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
func (w *Folders) read(name string) (label, error) {
	l, err := w.readFile(name)
	return w.withLink(name, l), err
}

func (w *Folders) readFile(name string) (l label, err error) {
	data, err := os.ReadFile(w.labelPath(name))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err == nil && !l.Spare {
		err = sessionid.Validate(l.ID)
	}
	return l, err
}

// withLink is a session's label with what the link says from where its files come. The label is read first: the link is there
// before it, and goes when all files have come.
func (w *Folders) withLink(name string, l label) label {
	if l.ID == "" {
		return l
	}
	if from, err := os.Readlink(w.fromPath(name)); err == nil && folderName.MatchString(from) {
		l.From = from
	}
	return l
}

// write puts a label in its place in one step, so that a crash leaves the old one or the new one, and a full disk the old.
func (w *Folders) write(name string, l label) error {
	return w.replace(name, l, func(string) error { return nil })
}

// rewrite is write for a label by which files are found that may have been there for long: the disk has the new one before
// the old one goes.
func (w *Folders) rewrite(name string, l label) error { return w.replace(name, l, syncFile) }

// replace puts a label in its place when it is as it must be.
func (w *Folders) replace(name string, l label, ready func(path string) error) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	path := w.labelPath(name)
	if err = os.WriteFile(path+".tmp", data, 0o600); err == nil {
		err = ready(path + ".tmp")
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		_ = os.Remove(path + ".tmp")
	}
	return err
}

// Ran tells whether cells have run in k's folder. A label without a language is of a folder that somebody has only put files
// into.
func (w *Folders) Ran(k Key) bool {
	if dir, ok := w.Find(k); ok {
		l, err := w.read(filepath.Base(dir))
		return err != nil || l.Language != ""
	}
	return false
}

// NoteRan has Ran tell that cells of language have run in k's folder, which this process uses.
func (w *Folders) NoteRan(k Key, language string) {
	name, l, err := w.labelled(k)
	if err == nil && l.Language == "" && !w.moving(l) {
		l.Language, l.From = language, ""
		err = w.rewrite(name, l)
	}
	if err != nil {
		w.log.Warn("workspace label cannot be written", "error", err)
	}
}
