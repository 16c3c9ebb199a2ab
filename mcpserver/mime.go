package mcpserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cellblock/internal/filetype"
	"cellblock/internal/jsontext"
	"cellblock/internal/words"
	"cellblock/mcpserver/htmltext"
	"cellblock/mcpserver/terminal"
)

// mimeBundle is one output in several forms, by MIME type (Jupyter messaging, "display_data").
type mimeBundle = map[string]json.RawMessage

// placeholder is a text that says only that there is something to see in a richer form: "<Figure size 640x480 with 1
// Axes>", "<IPython.core.display.HTML object>", "<graphviz.graphs.Digraph at 0x7f0c>".
var placeholder = regexp.MustCompile(`^<[\w.]+( object)?( at 0x[0-9a-f]+| size .* Axes)?>$`)

// IsPlaceholder tells whether an output's text only stands for a richer form of it.
func IsPlaceholder(text string) bool { return placeholder.MatchString(strings.TrimSpace(text)) }

// maxSVG is the longest SVG that is shown as its source, in characters: a small drawing can be read, a plot cannot.
const maxSVG = 4000

// bundleText returns the form of a bundle that says most to a reader of text. kept says where forms are that he cannot
// read.
func bundleText(data mimeBundle, kept string) string {
	text := terminal.Plain(mimeText(data["text/plain"]))
	if mime := firstOf(data, "text/markdown", "text/latex"); mime != "" {
		if marked := terminal.Plain(mimeText(data[mime])); mime == "text/markdown" || !saysAsMuch(text, marked) {
			return marked
		}
		return text
	}
	if value, ok := data["application/json"]; ok {
		return terminal.Plain(compact(value))
	}
	html := mimeText(data["text/html"])
	if len(data) == 1 && isLoader(html) || isBlank(data, html, text) {
		return ""
	}
	if text != "" && !IsPlaceholder(text) {
		chart := func(mime string) bool { return isChart(mime) || mime == "text/html" && isScript(html) }
		return joinLines(text, unreadable(data, chart, kept))
	}
	if shown := htmltext.Of(html); strings.TrimSpace(shown) != "" {
		return joinLines(terminal.Plain(shown), unreadable(data, isChart, kept))
	}
	if svg := mimeText(data["image/svg+xml"]); svg != "" && utf8.RuneCountInString(svg) <= maxSVG {
		return terminal.Plain(svg)
	}
	return joinLines(text, unreadable(data, anyForm, kept))
}

// saysAsMuch tells whether a text is better to read than the LaTeX of the same: a table is, and a formula that is shorter so, as code
// for one is.
func saysAsMuch(text, latex string) bool {
	shorter := len(text) <= len(latex) && !strings.Contains(text, "\n") // what is drawn with characters is harder to read
	return text != "" && !IsPlaceholder(text) && (shorter || strings.Contains(latex, `\begin{tabular}`))
}

func anyForm(string) bool { return true }

// isChart tells whether a form is a chart's, which a browser draws.
func isChart(mime string) bool {
	return strings.Contains(mime, "plotly") || strings.Contains(mime, "vega") || strings.Contains(mime, "bokeh")
}

// isScript tells whether HTML shows nothing but what its script draws, as that of libraries for charts does.
func isScript(source string) bool {
	return strings.Contains(source, "<script") && strings.TrimSpace(htmltext.Of(source)) == ""
}

// loads is what the script begins with by which plotly brings itself into a notebook's page, megabytes of it, before its first figure.
var loads = regexp.MustCompile(`^\s*<script[^>]*>\s*(?:window\.PlotlyConfig = |import "https://cdn\.plot\.ly/|/\*\*\s*\* plotly\.js )`)

// isLoader tells whether HTML is such a script: it shows nothing to anybody. An element would be a figure's.
func isLoader(source string) bool {
	_, behind, _ := strings.Cut(source, "</script>")
	return loads.MatchString(source) && !strings.Contains(behind, "<div")
}

// blank is HTML that shows nothing to anybody: a style for the page, or the lines of a program that has printed none yet, as rich's.
var blank = regexp.MustCompile(`^(?:\s|</?(?:pre|code|p|span|br)\b[^<>]*>|<style\b[^<>]*>[^<]*</style>)*$`)

// isBlank tells whether an output is such HTML, beside a text that says no more.
func isBlank(data mimeBundle, html, text string) bool {
	_, plain := data["text/plain"]
	alone := html != "" && (len(data) == 1 || len(data) == 2 && plain)
	return alone && (strings.TrimSpace(text) == "" || IsPlaceholder(text)) && blank.MatchString(html)
}

// unreadable names those forms that a model cannot read here.
func unreadable(data mimeBundle, those func(mime string) bool, kept string) string {
	var forms []string
	for _, mime := range slices.Sorted(maps.Keys(data)) {
		if those(mime) && mime != "text/plain" && !slices.Contains(filetype.Images, mime) {
			forms = append(forms, clean(mime)+", "+formSize(mime, data[mime]))
		}
	}
	if len(forms) == 0 {
		return ""
	}
	return "[not shown: " + strings.Join(forms, "; ") + wayOut(data) + kept + "]"
}

// wayOut says how to show what cannot be shown in its form.
func wayOut(data mimeBundle) string {
	for mime := range data {
		if mime == "image/svg+xml" || isChart(mime) || mime == "text/html" && isScript(mimeText(data[mime])) {
			return "; make it a PNG, with matplotlib for example, to see it"
		}
	}
	return ""
}

// formSize says how large a form is: of binary ones what their base64 stands for.
func formSize(mime string, value json.RawMessage) string {
	n := int64(len(mimeText(value)))
	if !isText(mime) {
		n = (n*3 + 3) / 4
	}
	return words.Bytes(n)
}

// isText tells whether a form is text or JSON; kernels send all others in base64.
func isText(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "image/svg+xml" || mime == "application/json" ||
		strings.HasSuffix(mime, "+json") || strings.HasSuffix(mime, "+xml") || strings.HasPrefix(mime, "application/javascript") ||
		strings.HasPrefix(mime, "application/xml")
}

// firstOf returns the first of the types that the bundle has, or "".
func firstOf(data mimeBundle, types ...string) string {
	for _, mime := range types {
		if len(data[mime]) > 0 {
			return mime
		}
	}
	return ""
}

// compact is JSON without the white space that the kernel put in.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// mimeText returns the text of a form: a JSON string or a list of them (nbformat), else the JSON as it is.
func mimeText(value json.RawMessage) string {
	if text, ok := jsontext.Text(value); ok {
		return text
	}
	if jsontext.IsNull(value) {
		return ""
	}
	var lines []string
	if json.Unmarshal(value, &lines) == nil {
		return strings.Join(lines, "")
	}
	return string(value)
}
