package viewer

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/web/render"
)

const (
	// maxOutput bounds one form of an output that is sent, in bytes.
	maxOutput = 64 << 20
	// maxSearched bounds how many outputs of each kind are looked through for libraries.
	maxSearched = 40
	// minLibrary is the least size of a library that is looked for, in bytes: pictures are smaller, most of them, and Plotly's and
	// Bokeh's are larger.
	minLibrary = 400 << 10
	// maxBetween bounds how far before an output its place is looked for.
	maxBetween = 10
	// rawPolicy keeps what is served as it is from doing anything where somebody opens it alone.
	rawPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)

// cell finds the cell that a request is about.
func (v *Viewer) cell(r *http.Request, who visit) (*sessions.Execution, error) {
	return v.Sessions.Execution(r.Context(), who.owner, r.PathValue("id"), atoi(r.PathValue("number")))
}

// output finds the output that a request is about.
func (v *Viewer) output(r *http.Request, who visit) (*sessions.Execution, kernels.Output, error) {
	e, err := v.cell(r, who)
	if err != nil {
		return nil, kernels.Output{}, err
	}
	index := atoi(r.PathValue("index"))
	out, ok := e.OutputAt(index)
	if !ok {
		return nil, out, fault.New(fault.NotFound, "output %d of cell %d is not kept", index, e.Number())
	}
	return e, out, nil
}

// wholeItem answers with all of a text that was folded, or, where that is asked for, with the text folded again.
func (v *Viewer) wholeItem(w http.ResponseWriter, r *http.Request, who visit) error {
	e, err := v.cell(r, who)
	if err != nil {
		return err
	}
	s := v.newShown(r.PathValue("id"), e, e.Info())
	s.all = !r.URL.Query().Has("folded")
	more := s.pull(e, &budget{outputs: maxCellOutputs, bytes: maxBlockBytes})
	for _, it := range s.items {
		if it.Key == r.PathValue("key") {
			if it.text != nil {
				it.text.unread = more && it == s.last()
			}
			return writeJSON(w, http.StatusOK, map[string]string{"html": string(s.html(it))})
		}
	}
	return fault.New(fault.NotFound, "this output is not there any more").WithHint("Load the page again.")
}

// rawOutput serves one form of an output: pictures to be shown, all else to be downloaded.
func (v *Viewer) rawOutput(w http.ResponseWriter, r *http.Request, who visit) error {
	e, out, err := v.output(r, who)
	if err != nil {
		return err
	}
	form := r.URL.Query().Get("mime")
	raw, ok := out.Data[form]
	if !ok {
		return fault.New(fault.NotFound, "the output has no such form")
	}
	if len(raw) > maxOutput {
		return fault.New(fault.Invalid, "the output has %s, more than the %s that are sent", words.Bytes(int64(len(raw))), words.Bytes(maxOutput)).
			WithHint("Let code write it into a file of the workspace.")
	}
	body, err := formBytes(form, raw)
	if err != nil {
		return err
	}
	h := w.Header()
	disposition, kind, ending := "attachment", "application/octet-stream", "bin"
	if render.IsPicture(form) {
		disposition, kind = "inline", form
		ending = map[string]string{"image/svg+xml": "svg", "image/jpeg": "jpg"}[form]
		if ending == "" {
			ending = strings.TrimPrefix(form, "image/")
		}
	}
	name := r.PathValue("id") + "-" + e.ID() + "-" + r.PathValue("index") + "." + ending
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": name}))
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", rawPolicy)
	h.Set("Cache-Control", "private, max-age=600")
	w.Write(body) // a browser that has gone away does not read it
	return nil
}

// formBytes is the form of an output as bytes: texts are themselves, all else is base64.
func formBytes(form string, raw json.RawMessage) ([]byte, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return raw, nil // JSON
	}
	if strings.HasPrefix(form, "text/") || form == "image/svg+xml" || form == "application/javascript" || strings.HasSuffix(form, "json") {
		return []byte(text), nil
	}
	body, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "", " ", "").Replace(text))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the output is not what it says it is: no base64")
	}
	return body, nil
}

// frameOutput serves the document of an output that needs scripts, to a frame of ours and to nobody else.
func (v *Viewer) frameOutput(w http.ResponseWriter, r *http.Request, who visit) error {
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "iframe" {
		return fault.New(fault.Forbidden, "this is shown in the session's page only")
	}
	e, out, err := v.output(r, who)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Del("X-Frame-Options") // the policy says who may frame it
	h.Set("Content-Security-Policy", render.FramePolicy)
	h.Set("Connection-Allowlist", render.ConnectionAllowlist)
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=(), fullscreen=(), display-capture=()")
	h.Set("X-DNS-Prefetch-Control", "off")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "private, max-age=600")
	index := atoi(r.PathValue("index"))
	out = render.Placed(out, before(e, index))
	libraries, searched := v.libraries(r, who, e, index, out)
	_, _ = w.Write([]byte(render.FrameOf(out, libraries, searched))) // a browser that has gone away does not read it
	return nil
}

// before yields the outputs before one of a cell, the last first.
func before(e *sessions.Execution, index int) iter.Seq[kernels.Output] {
	return func(yield func(kernels.Output) bool) {
		for i := index - 1; i >= max(index-maxBetween, 0); i-- {
			if out, ok := e.OutputAt(i); ok && !yield(out) {
				return
			}
		}
	}
}

// libraries are the outputs before one that have loaded, in the same kernel, libraries which it uses: of each the last. It tells
// whether it has looked through all that there are.
func (v *Viewer) libraries(r *http.Request, who visit, e *sessions.Execution, index int, out kernels.Output) (libraries []kernels.Output, searched bool) {
	wanted := render.Uses(out)
	if len(wanted) == 0 {
		return nil, true
	}
	id := r.PathValue("id")
	if e.Saved(r.Context()) != nil {
		return nil, false
	}
	searched = true
	for _, kind := range []kernels.OutputKind{kernels.OutputDisplay, kernels.OutputResult} {
		left := maxSearched
		query := sessions.OutputQuery{Kind: kind, From: 1, To: e.Number(), Size: minLibrary, Limit: maxSearched}
		for f, err := range v.Sessions.FindOutputs(r.Context(), who.owner, id, query) {
			if left--; err != nil || left == 0 {
				searched = false
			}
			i := slices.Index(wanted, render.Library(f.Output))
			if i < 0 || f.Number == e.Number() && f.Index >= index {
				continue
			}
			if of, err := v.Sessions.Execution(r.Context(), who.owner, id, f.Number); err == nil && of.Generation() == e.Generation() {
				libraries = append(libraries, f.Output)
				if wanted = slices.Delete(wanted, i, i+1); len(wanted) == 0 {
					return libraries, true
				}
			}
		}
	}
	return libraries, searched
}
