// Package render makes HTML of what cells are and produce: code, streams, errors, and MIME bundles in their richest form.
//
// All of it is hostile: code and outputs are a model's, or of whoever wrote what it read. What this package returns as
// template.HTML has no script, no style, no event handler, no address but those that a Links gave, and only the class names that are
// listed here; a page can hold it as it is. What cannot be shown without the right to run scripts (charts of Plotly, Bokeh and
// Altair, any HTML that is more than text and tables) is only named, by an <iframe> whose document Frame makes: it belongs behind
// a Content-Security-Policy with "sandbox allow-scripts" and no network.
//
// The package does no I/O and keeps no state. What it makes is bounded: maxText bytes of a text are shown, and of a longer one its
// beginning, with a remark.
package render

import (
	"html"
	"html/template"
	"strings"

	"cellblock/internal/words"
)

const (
	// maxText bounds how much of one text is made HTML of, in bytes. More can be downloaded.
	maxText = 2 << 20
	// maxHTML bounds what one text becomes: tags around every character make much of little.
	maxHTML = 8 << 20
	// maxHighlighted bounds the code that gets colours.
	maxHighlighted = 64 << 10
)

// clip cuts a text to a bound between two characters, and says so.
func clip(text string, most int) (kept, remark string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text, ""
	}
	kept = strings.ToValidUTF8(text[:most], "")
	return kept, "… " + words.Bytes(int64(len(text)-len(kept))) + " more are not shown …"
}

// directions names the characters that turn around what stands behind them.
var directions = strings.NewReplacer("\u202a", `\u202a`, "\u202b", `\u202b`, "\u202c", `\u202c`, "\u202d", `\u202d`, "\u202e", `\u202e`,
	"\u2066", `\u2066`, "\u2067", `\u2067`, "\u2068", `\u2068`, "\u2069", `\u2069`)

// undirected is a text that is read in the order in which it stands: characters that change the direction are named. What is written
// from right to left needs none of them.
func undirected(text string) string { return directions.Replace(text) }

// remark is something that we say about an output.
func remark(text string) template.HTML {
	if text == "" {
		return ""
	}
	return template.HTML(`<p class="remark">` + html.EscapeString(text) + `</p>`)
}

// plainPre is a text as it stands.
func plainPre(class, text string) template.HTML {
	text, more := clip(text, maxText)
	return template.HTML(`<pre class="`+class+`">`+html.EscapeString(undirected(text))+`</pre>`) + remark(more)
}

// guarded returns what a library makes of a hostile text, or the fallback when that fails, even by a panic.
func guarded(fallback func() template.HTML, render func() (template.HTML, error)) (made template.HTML) {
	defer func() {
		if recover() != nil {
			made = fallback()
		}
	}()
	made, err := render()
	if err != nil || len(made) > maxHTML {
		return fallback()
	}
	return made
}
