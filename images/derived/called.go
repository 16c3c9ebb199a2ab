package derived

import (
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
// backup is restored beside another one. Each name is a file.
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
	defer l.mu.Unlock()
	shelf := l.shelf(owner)
	var names []string
	taken := map[string]bool{}
	for of, all := range l.owned {
		for _, name := range all {
			if name, his := strings.CutPrefix(name, shelf); his && of == image {
				names = append(names, name)
			} else if his {
				taken[name] = true
			}
		}
	}
	if _, known := l.owned[image]; !known {
		if name := l.noted(owner, image); name != "" && !taken[name] {
			return name
		}
	}
	if len(names) == 0 {
		return Unnamed
	}
	return slices.Min(names)
}

// nameFile is where it is noted what an owner last called an image.
func (l *Library) nameFile(owner, image string) string {
	sum := sha256.Sum256([]byte(owner))
	return filepath.Join(l.cfg.Folder, NamesFolder, strings.TrimSuffix(image, ":latest")+"."+hex.EncodeToString(sum[:8]))
}

// noteName notes what an owner calls an image.
func (l *Library) noteName(owner, image, name string) {
	path := l.nameFile(owner, image)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(name), 0o600)
	}
	if err != nil {
		l.cfg.Logger.Warn("an image's name could not be noted: a restored backup will not know it", "image", image, "error", err)
	}
}

// noted is what an owner last called an image, empty where nobody knows.
func (l *Library) noted(owner, image string) string {
	name, err := os.ReadFile(l.nameFile(owner, image))
	if err != nil || CheckName(string(name)) != nil {
		return ""
	}
	return string(name)
}

// forgetNames forgets what owners called an image that is gone.
func (l *Library) forgetNames(image string) {
	files, _ := filepath.Glob(strings.TrimSuffix(l.nameFile("", image), filepath.Ext(l.nameFile("", image))) + ".*") // the pattern is ours
	for _, file := range files {
		_ = os.Remove(file)
	}
}
