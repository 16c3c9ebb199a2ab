package derived

import (
	"slices"
	"strings"
)

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

// Called returns what an owner calls an image of his; of several names the first in the alphabet. Of an image without one, whose name
// has been deleted or given to another, it returns what the engine calls it.
func (l *Library) Called(owner, image string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	shelf := l.shelf(owner)
	var names []string
	for _, name := range l.owned[image] {
		if name, his := strings.CutPrefix(name, shelf); his {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return strings.TrimSuffix(image, ":latest")
	}
	return slices.Min(names)
}
