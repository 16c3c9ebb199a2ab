package viewer

import (
	"net/http"
	"slices"
	"strings"

	"cellblock/internal/words"
	"cellblock/mcpserver"
)

// imageChoice is an image that a new session may run in, besides its language's own.
type imageChoice struct {
	Name string `json:"name"`
	// About says what sets it apart.
	About string `json:"about"`
}

// nameImage tells whether the visitor may name an image, but not see which there are.
func (v *Viewer) nameImage(who visit) bool {
	return v.Images != nil && !who.can(mcpserver.ScopeImages)
}

// imageChoices answers with the images that the visitor may choose, by the languages that he may run; with none where kernels run in no
// images.
func (v *Viewer) imageChoices(w http.ResponseWriter, r *http.Request, who visit) error {
	choices := map[string][]imageChoice{}
	if v.Images == nil {
		return writeJSON(w, http.StatusOK, choices)
	}
	list, err := v.Images.List(r.Context(), who.owner.Key())
	if err != nil {
		return err
	}
	for _, l := range v.languages(who) {
		choices[l.Name] = []imageChoice{}
		for _, e := range list {
			if e.Name != v.Sessions.Config().Runtimes[l.Name].Image && slices.Contains(e.Languages, l.Name) {
				choices[l.Name] = append(choices[l.Name], imageChoice{e.Name, aboutImage(e.Packages, e.Size)})
			}
		}
	}
	return writeJSON(w, http.StatusOK, choices)
}

// aboutImage describes an image by what was installed into it, and its size in bytes.
func aboutImage(packages []string, size int64) string {
	about := "the server's own"
	if len(packages) > 0 {
		about = "with " + strings.Join(packages, ", ")
	}
	if size > 0 {
		about += ", " + words.Bytes(size)
	}
	return about
}
