package images

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// Label is the label by which an image says which languages it brings: their names, with commas between them. For each
	// there is a kernelspec in one of KernelspecFolders.
	Label = "cellblock.languages"
	// NamePrefix begins the names of images that are used without being named in the configuration: "cellblock-bash:latest".
	NamePrefix = "cellblock-"
)

// Labelled reads the value of Label.
func Labelled(value string) []string {
	var names []string
	for _, part := range strings.Split(value, ",") {
		if name := Name(part); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Usable tells whether an image is used for its languages without being named in the configuration, by its name: as
// "cellblock-bash:latest", of no registry, or of the one that stands for none.
func Usable(image string) bool {
	name, isLatest := strings.CutSuffix(strings.TrimPrefix(image, "localhost/"), ":latest")
	return isLatest && strings.HasPrefix(name, NamePrefix) && !strings.Contains(name, "/")
}

// Offer is what one image brings.
type Offer struct {
	Image     string
	Languages []Language
}

// Choose says what each language runs in: the image that carries its name, else the one that brings the fewest languages.
func Choose(offers []Offer) []Language {
	offers = slices.Clone(offers)
	slices.SortStableFunc(offers, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(len(a.Languages), len(b.Languages)), strings.Compare(a.Image, b.Image))
	})
	best := map[string]Language{}
	for _, o := range offers {
		for _, l := range o.Languages {
			l.Image = o.Image
			if _, taken := best[l.Name]; !taken || carries(o.Image, l.Name) {
				best[l.Name] = l
			}
		}
	}
	chosen := make([]Language, 0, len(best))
	for _, l := range best {
		chosen = append(chosen, l)
	}
	slices.SortFunc(chosen, func(a, b Language) int { return strings.Compare(a.Name, b.Name) })
	return chosen
}

// carries tells whether an image is named after a language.
func carries(image, language string) bool {
	return strings.TrimPrefix(image, "localhost/") == NamePrefix+language+":latest"
}
