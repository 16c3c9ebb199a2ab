package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// mimeBundle is one output in several forms, by MIME type (Jupyter messaging, "display_data").
type mimeBundle = map[string]json.RawMessage

// placeholder is a text that says only that there is something to see in a richer form: "<Figure size 640x480 with 1
// Axes>", "<IPython.core.display.HTML object>".
var placeholder = regexp.MustCompile(`^<[\w.]+( object( at 0x[0-9a-f]+)?| size .* Axes)>$`)

// bundleText returns the form of a bundle that says most to a reader of text.
func bundleText(data mimeBundle) string {
	if mime := firstOf(data, "text/markdown", "text/latex"); mime != "" {
		return plain(mimeText(data[mime]))
	}
	if value, ok := data["application/json"]; ok {
		return plain(compact(value))
	}
	text := plain(mimeText(data["text/plain"]))
	if text != "" && !placeholder.MatchString(strings.TrimSpace(text)) {
		return text
	}
	if html := htmlText(mimeText(data["text/html"])); html != "" {
		return plain(html)
	}
	return joinLines(text, unreadable(data))
}

// unreadable names the forms that a model cannot read here.
func unreadable(data mimeBundle) string {
	var forms []string
	for _, mime := range slices.Sorted(maps.Keys(data)) {
		if mime != "text/plain" && !isImage(mime) {
			forms = append(forms, fmt.Sprintf("%s, %s", clean(mime), plural(int64(len(mimeText(data[mime]))), "byte")))
		}
	}
	if len(forms) == 0 {
		return ""
	}
	note := "[not shown: " + strings.Join(forms, "; ")
	if _, ok := data["image/svg+xml"]; ok {
		note += "; display it as PNG to see it"
	}
	return note + "]"
}

func isImage(mime string) bool {
	return strings.HasPrefix(mime, "image/") && mime != "image/svg+xml"
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
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var lines []string
	if json.Unmarshal(value, &lines) == nil {
		return strings.Join(lines, "")
	}
	return string(value)
}
