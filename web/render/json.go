package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"strings"

	"cellblock/internal/words"
)

// Bounds of a tree: how deep it goes, how many values it shows, and how long a text in it may be, in bytes.
const (
	maxDepth  = 40
	maxNodes  = 5000
	maxString = 2000
)

// JSON is a value as a tree whose branches open and close; the first levels are open. Text that is no JSON is shown as it stands.
func JSON(raw []byte) template.HTML {
	if len(raw) > maxText || !json.Valid(raw) {
		return plainPre("text", string(raw))
	}
	t := tree{in: json.NewDecoder(bytes.NewReader(raw))}
	t.in.UseNumber()
	made, err := t.value(0)
	if err != nil {
		return plainPre("text", string(raw))
	}
	return template.HTML(`<div class="json">` + made + `</div>`)
}

// tree makes HTML of a value as it is read, so that members keep their order and numbers their digits.
type tree struct {
	in    *json.Decoder
	nodes int
}

// value is the HTML of the next value; of one for which there is no room nothing is made, but it is read to its end.
func (t *tree) value(depth int) (string, error) {
	token, err := t.in.Token()
	if err != nil {
		return "", err
	}
	t.nodes++
	switch v := token.(type) {
	case json.Delim:
		return t.branch(v, depth)
	case string:
		return leaf("string", fmt.Sprintf("%q", clipped(v))), nil
	case json.Number:
		return leaf("number", clipped(v.String())), nil
	case bool:
		return leaf("word", fmt.Sprint(v)), nil
	default:
		return leaf("word", "null"), nil
	}
}

func clipped(text string) string {
	if kept, more := clip(text, maxString); more != "" {
		return kept + "…"
	}
	return text
}

func leaf(class, text string) string {
	return `<span class="json-` + class + `">` + html.EscapeString(text) + `</span>`
}

// branch is an array or an object.
func (t *tree) branch(open json.Delim, depth int) (string, error) {
	var inner strings.Builder
	n, shown := int64(0), int64(0)
	for ; t.in.More(); n++ {
		visible := t.nodes < maxNodes && depth < maxDepth
		entry, err := t.entry(open, depth)
		if err != nil {
			return "", err
		}
		if visible {
			inner.WriteString("<li>" + entry + "</li>")
			shown++
		}
	}
	if _, err := t.in.Token(); err != nil { // what closes it
		return "", err
	}
	return folded(open, n, shown, inner.String(), depth), nil
}

func (t *tree) entry(open json.Delim, depth int) (string, error) {
	if open != '{' {
		return t.value(depth + 1)
	}
	name, err := t.in.Token()
	if err != nil {
		return "", err
	}
	value, err := t.value(depth + 1)
	return `<span class="json-name">` + html.EscapeString(clipped(fmt.Sprint(name))) + `</span>: ` + value, err
}

func folded(open json.Delim, n, shown int64, inner string, depth int) string {
	kind, left, right := "item", "[", "]"
	if open == '{' {
		kind, left, right = "member", "{", "}"
	}
	if n == 0 {
		return left + right
	}
	if shown < n {
		inner += "<li>… " + words.Thousands(n-shown) + " more</li>"
	}
	expanded := ""
	if depth < 2 && n <= 20 {
		expanded = " open"
	}
	return `<details` + expanded + `><summary>` + left + ` <span class="json-count">` + words.Count(n, kind) + `</span> ` + right +
		`</summary><ul>` + inner + `</ul></details>`
}
