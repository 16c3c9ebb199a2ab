package viewer

import (
	"html/template"
	"net/http"
	"strings"

	"cellblock/web/render"
)

// question is what somebody is writing, and where in it the cursor is, in Unicode code points.
type question struct {
	Code   string
	Cursor int
}

// asked reads a question of who may run the session's language: the kernel may run code to answer it.
func (v *Viewer) asked(r *http.Request, who visit) (q question, err error) {
	if err := readJSON(r, &q); err != nil {
		return q, err
	}
	_, err = v.mayRunIn(r, who)
	return q, err
}

// complete answers with what could stand at the cursor.
func (v *Viewer) complete(w http.ResponseWriter, r *http.Request, who visit) error {
	q, err := v.asked(r, who)
	if err != nil {
		return err
	}
	c, err := v.Sessions.Complete(r.Context(), who.owner, r.PathValue("id"), q.Code, q.Cursor)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, c)
}

// inspect answers with what the kernel has to say of the name at the cursor.
func (v *Viewer) inspect(w http.ResponseWriter, r *http.Request, who visit) error {
	q, err := v.asked(r, who)
	if err != nil {
		return err
	}
	help, err := v.Sessions.Inspect(r.Context(), who.owner, r.PathValue("id"), q.Code, q.Cursor)
	if err != nil {
		return err
	}
	var lines []string
	if help != "" {
		for _, line := range render.Terminal(help) {
			lines = append(lines, string(line))
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"html": template.HTML(strings.Join(lines, "\n"))})
}
