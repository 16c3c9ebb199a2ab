package derived

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Unnamed is what an image is called that its owner has no name for: no name is so.
const Unnamed = "(unnamed)"

// NamesFolder is the folder within Config.Folder that has what owners called their images, for when the engine does not know it: a
// backup is restored beside another one. A file stands for an owner's name, and has the image that he last gave it to.
const NamesFolder = "names"

// note remembers what owners call the images, so that nobody who only shows them asks the engine.
func (l *Library) note(all []Image) {
	names := map[string][]string{} // by id
	for _, i := range all {
		if strings.HasPrefix(i.Name, ownedPrefix) {
			names[i.ID] = append(names[i.ID], i.Name)
		}
	}
	owned := map[string][]string{}
	for _, i := range all {
		if strings.HasPrefix(i.Name, Prefix) {
			owned[i.Name] = names[i.ID]
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owned = owned
}

// Called returns what an owner calls an image of his; of several names the first in the alphabet. An image whose name has been deleted
// or given to another is Unnamed; one that this installation does not have, as its session was restored from a backup, is called what it
// last was. Images that are nobody's are called what the engine calls them.
func (l *Library) Called(owner, image string) string {
	if !strings.HasPrefix(image, Prefix) {
		return strings.TrimSuffix(image, ":latest")
	}
	l.mu.Lock()
	all, known := l.owned[image]
	l.mu.Unlock()
	if !known {
		return cmp.Or(l.noted(owner, image), Unnamed)
	}
	var names []string
	for _, name := range all {
		if name, his := strings.CutPrefix(name, l.shelf(owner)); his {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return Unnamed
	}
	return slices.Min(names)
}

// noteName notes to which image an owner has given a name.
func (l *Library) noteName(owner, image, name string) {
	path := l.nameFile(owner, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(image), 0o600)
	}
	if err != nil {
		l.cfg.Logger.Warn("an image's name could not be noted: a restored backup will not know it", "image", image, "error", err)
	}
}

func (l *Library) nameFile(owner, name string) string {
	return filepath.Join(l.namesFolder(), nameFilePrefix(owner)+name)
}

// nameFilePrefix begins the files of an owner's names: whoever restores a backup is another installation, but has the same owners.
func nameFilePrefix(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8]) + "."
}

func (l *Library) namesFolder() string { return filepath.Join(l.cfg.Folder, NamesFolder) }

// noted is the first in the alphabet of what an owner last called an image, empty where nobody knows.
func (l *Library) noted(owner, image string) string {
	for _, file := range l.notesOf(image) {
		if name, his := strings.CutPrefix(file, nameFilePrefix(owner)); his && CheckName(name) == nil {
			return name
		}
	}
	return ""
}

// forgetNames forgets what owners called an image that is gone.
func (l *Library) forgetNames(image string) {
	for _, file := range l.notesOf(image) {
		_ = os.Remove(filepath.Join(l.namesFolder(), file)) // what is left of it is a name that nobody asks for
	}
}

// notesOf are the files of an image's names, sorted.
func (l *Library) notesOf(image string) (files []string) {
	all, _ := os.ReadDir(l.namesFolder()) // where it cannot be read nobody knows the names
	for _, file := range all {
		of, err := os.ReadFile(filepath.Join(l.namesFolder(), file.Name()))
		if err == nil && string(of) == image {
			files = append(files, file.Name())
		}
	}
	return files
}
