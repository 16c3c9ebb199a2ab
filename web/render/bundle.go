package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"cellblock/internal/filetype"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// Page is where an output is shown. Raw and Frame are the addresses at which its forms are served, one MIME type as it is and the
// document of FrameOf; each may be empty, where a page has no way there, and Raw of a picture the picture itself, as a data: URL.
// Text is how the page shows a plain text, of which it may fold a part.
type Page interface {
	Raw(mime string) string
	Frame() string
	Text(text string) template.HTML
}

// pictures are the images that browsers show, the best first.
var pictures = []string{"image/svg+xml", "image/png", "image/jpeg", "image/webp", "image/gif", "image/avif"}

// IsPicture tells whether a MIME type is an image that may be served to an <img>.
func IsPicture(mime string) bool { return slices.Contains(pictures, mime) }

// Bundle is what a display or a result shows: its richest form.
func Bundle(out kernels.Output, page Page) template.HTML {
	if isPlace(out) {
		return ""
	}
	if made, ok := libraryForm(out); ok {
		return made
	}
	if made, ok := shownHTML(out, page); ok {
		return made
	}
	if made, ok := pictureForm(out, page); ok {
		return made
	}
	if made, ok := textForm(out, page); ok {
		return made
	}
	return other(out, page)
}

// ByAddress tells whether Bundle shows no more of an output than an address of it, or its size, however large it is.
func ByAddress(out kernels.Output) bool {
	_, library := out.Data[bokehLoad]
	if library || Library(out) != "" || framed(out.Data) {
		return true
	}
	return !needsFrame(out.Data) && slices.ContainsFunc(pictures, func(mime string) bool { return out.Data[mime] != nil })
}

// framed tells whether a bundle is for a frame without a look into its HTML.
func framed(data map[string]json.RawMessage) bool {
	_, script := data["application/javascript"]
	_, bokeh := data[bokehExec]
	return script || bokeh || leastText(data["text/html"]) > maxTable
}

// maxEscaped is how many bytes of JSON a byte of a text has at most.
const maxEscaped = len(`\u0000`)

// leastText is how long, in bytes, the text of a value is at least.
func leastText(raw json.RawMessage) int {
	if len(raw) == 0 || raw[0] != '"' {
		return len(raw) / maxEscaped
	}
	return len(raw) - len(`""`) - (maxEscaped-1)*bytes.Count(raw, []byte(`\`))
}

// shownHTML is the form of a bundle that is HTML or a script, if it has one that shows something.
func shownHTML(out kernels.Output, page Page) (template.HTML, bool) {
	if !needsFrame(out.Data) {
		return "", false
	}
	if !framed(out.Data) {
		source := textOf(out.Data["text/html"])
		if made, ok := HTML(source); ok {
			return made, strings.TrimSpace(source) != ""
		}
	}
	if address := page.Frame(); address != "" {
		return template.HTML(frame(address)), true
	}
	return still(out, page), true
}

// textForm is the form of a bundle that is a text of some kind.
func textForm(out kernels.Output, page Page) (template.HTML, bool) {
	if raw, ok := out.Data["text/markdown"]; ok {
		return Markdown(textOf(raw)), true
	}
	if raw, ok := out.Data["text/latex"]; ok {
		return LaTeX(textOf(raw)), true
	}
	if raw, ok := out.Data["application/json"]; ok {
		return JSON(raw), true
	}
	if mime := chart(out.Data); mime != "" {
		return remark("A chart for a notebook program ("+mime+"), which has no HTML of its own. It can be had as HTML: Plotly with pio.renderers.default = \"notebook\", "+
			"Altair with alt.renderers.enable(\"html\", inline=True).") + JSON(out.Data[mime]), true
	}
	if raw, ok := out.Data["text/plain"]; ok {
		return page.Text(textOf(raw)), true
	}
	return "", false
}

// chart is the type of a chart's description, which a notebook program would draw.
func chart(data map[string]json.RawMessage) string {
	for mime := range data {
		if strings.HasPrefix(mime, "application/vnd.plotly.") || strings.HasPrefix(mime, "application/vnd.vega") {
			return mime
		}
	}
	return ""
}

// pictureForm is the form of a bundle that is an image.
func pictureForm(out kernels.Output, page Page) (template.HTML, bool) {
	for _, mime := range pictures {
		if _, ok := out.Data[mime]; ok {
			return picture(mime, out, page), true
		}
	}
	return "", false
}

// picture is an image that opens when one clicks on it, and can be downloaded; one that the page itself holds is shown, and no more.
// What it shows is said by the text beside it.
func picture(mime string, out kernels.Output, page Page) template.HTML {
	if why := noPicture(mime, out.Data[mime]); why != "" {
		return remark("This picture cannot be shown: " + why + ".")
	}
	address := html.EscapeString(page.Raw(mime))
	if address == "" {
		return remark("A picture that is too large to be shown here.")
	}
	alt, _ := clip(strings.TrimSpace(textOf(out.Data["text/plain"])), 200)
	if alt == "" || strings.HasPrefix(alt, "<") {
		alt = "Picture made by the cell"
	}
	image := ` decoding="async" alt="` + html.EscapeString(alt) + `" src="` + address + `"` + measures(out.Metadata, mime) + `>`
	if strings.HasPrefix(address, "data:") {
		return template.HTML(`<figure class="picture"><img` + image + `</figure>`)
	}
	return template.HTML(`<figure class="picture"><button type="button" class="enlarge" aria-label="Enlarge the picture"><img loading="lazy"` + image +
		`</button><a class="save" download href="` + address + `" aria-label="Download the picture">Download</a></figure>`)
}

// maxPictureHead is how much of a picture's base64 is looked at, in bytes: whole groups of four.
const maxPictureHead = 4 << 10

var spaces = strings.NewReplacer("\n", "", "\r", "", " ", "")

// noPicture says why a form of an output cannot be the image that it is called; empty for one whose beginning is some image's. An
// SVG is a text, and of AVIF nothing here knows how it begins.
func noPicture(mime string, raw json.RawMessage) string {
	if mime == "image/svg+xml" || mime == "image/avif" {
		return ""
	}
	head := spaces.Replace(beginning(raw))
	n := min(len(head), maxPictureHead)
	if len(raw) > 2*maxPictureHead {
		n &^= 3 // its last group may be cut
	}
	content, err := base64.StdEncoding.DecodeString(head[:n])
	switch {
	case err != nil:
		return "its data is not base64"
	case !slices.Contains(filetype.Images, filetype.Of("", content)):
		return "its data is no image that browsers know"
	}
	return ""
}

// beginning is a value as textOf has it, of which no more than the first 2*maxPictureHead bytes need be read: a picture may be large.
func beginning(raw json.RawMessage) string {
	if len(raw) <= 2*maxPictureHead || raw[0] != '"' {
		return textOf(raw)
	}
	head := raw[1 : 2*maxPictureHead]
	if i := bytes.LastIndexByte(head, '\\'); i >= len(head)-len(`\u0000`) {
		head = head[:i] // it may be cut within an escape
	}
	return textOf(slices.Concat([]byte(`"`), head, []byte(`"`)))
}

// measures are the width and height that a kernel gave an image, so that the page does not jump when it comes.
func measures(metadata json.RawMessage, mime string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(metadata, &all) != nil {
		return ""
	}
	var of struct{ Width, Height float64 }
	if json.Unmarshal(all[mime], &of) != nil {
		return ""
	}
	made := ""
	for _, m := range []struct {
		name  string
		value float64
	}{{"width", of.Width}, {"height", of.Height}} {
		if m.value >= 1 && m.value <= 10_000 {
			made += ` ` + m.name + `="` + strconv.FormatInt(int64(m.value), 10) + `"`
		}
	}
	return made
}

// other is a bundle of which nothing can be shown.
func other(out kernels.Output, page Page) template.HTML {
	if len(out.Data) == 0 {
		return ""
	}
	var mimes []string
	for mime := range out.Data {
		mimes = append(mimes, mime)
	}
	slices.Sort(mimes)
	var b strings.Builder
	b.WriteString(`<p class="remark">Nothing of this output can be shown here:`)
	for _, mime := range mimes[:min(len(mimes), 20)] {
		name, _ := clip(mime, 100)
		made := html.EscapeString(name)
		if address := page.Raw(mime); address != "" {
			made = `<a download href="` + html.EscapeString(address) + `">` + made + `</a>`
		}
		b.WriteString(` ` + made + ` (` + words.Bytes(int64(len(out.Data[mime]))) + `)`)
	}
	return template.HTML(b.String() + `</p>`)
}

func size(out kernels.Output) (n int64) {
	for _, raw := range out.Data {
		n += int64(len(raw))
	}
	return n
}

// textOf is a value of a bundle as text: a string, the lines of a notebook's list, or JSON as it stands.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var lines []string
	if json.Unmarshal(raw, &lines) == nil {
		return strings.Join(lines, "")
	}
	return string(raw)
}
