package viewer

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
)

//go:embed templates
var templateFiles embed.FS

// policy is what pages may load and do. Styles and scripts are files of ours, and HTML gets into a page only through the one
// Trusted Types policy of fragment.js.
const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types cellblock"

// page is what the layout shows around a page's own part.
type page struct {
	// Title is the page's, Here its address in the navigation.
	Title, Here string
	Who         visit
	// Operator tells whether the visitor may see the server page.
	Operator bool
	Version  string
	// Style and Script name the page's own assets beside app.css and app.js, without endings.
	Parts []string
	// Body is for the page's own template.
	Body any
}

var functions = template.FuncMap{
	"asset":   assetPath,
	"rfc3339": rfc3339,
	"bytes":   words.Bytes,
	"took":    words.Took,
	"span":    words.Span,
	"count":   func(n int, noun string) string { return words.Count(int64(n), noun) },
	"parts":   func(name string) []string { return strings.SplitAfter(name, "_") },
	"inc":     func(n int) int { return n + 1 },
}

// rfc3339 is a moment as pages are told it.
func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// templates has a set for each page, which shares the layout and the partials and has a "main" of its own.
var templates = parseTemplates("sessions", "session", "server", "signin", "error", "bounce")

func parseTemplates(pages ...string) map[string]*template.Template {
	shared := template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts/*.html"))
	sets := map[string]*template.Template{}
	for _, name := range pages {
		set := template.Must(shared.Clone())
		sets[name] = template.Must(set.ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return sets
}

// show answers with a page.
func (v *Viewer) show(w http.ResponseWriter, status int, name string, p page) error {
	p.Version = v.Version
	p.Operator = v.operates(p.Who)
	var body bytes.Buffer
	if err := templates[name].ExecuteTemplate(&body, "layout", p); err != nil {
		return fault.New(fault.Internal, "the page %s cannot be made: %w", name, err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin") // with less, a form's Origin is null
	w.WriteHeader(status)
	w.Write(body.Bytes()) // a browser that has gone away does not read it
	return nil
}

// partial returns a partial as HTML, for a page that is there already.
func partial(name string, data any) (string, error) {
	var out bytes.Buffer
	err := templates["session"].ExecuteTemplate(&out, name, data)
	return out.String(), err
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a browser that has gone away does not read it
	return nil
}

// fail answers with an error, as a page or as JSON.
func (v *Viewer) fail(w http.ResponseWriter, r *http.Request, err error) {
	body := bodyForPeople(err)
	if body.Kind == fault.Internal {
		v.Logger.Error("a page failed", "path", r.URL.Path, "error", err)
	}
	if !wantsPage(r) {
		_ = writeJSON(w, body.Kind.HTTPStatus(), body)
		return
	}
	if err := v.show(w, body.Kind.HTTPStatus(), "error", page{Title: "Error", Who: visitOf(r.Context()), Body: body}); err != nil {
		v.Logger.Error("the page of an error failed", "error", err)
	}
}

// Nowhere answers who asks with a browser for a path that nothing may be at, and tells whether it was a browser.
func (v *Viewer) Nowhere(w http.ResponseWriter, r *http.Request) bool {
	asked := wantsPage(r)
	if asked {
		v.fail(w, r, v.notFound(w, r, visit{}))
	}
	return asked
}

func (v *Viewer) notFound(http.ResponseWriter, *http.Request, visit) error {
	return fault.New(fault.NotFound, "there is nothing at this address").WithHint("Look whether it is misspelt, or go on from the list of sessions.")
}
