package render

import (
	_ "embed"
	"encoding/json"
	"html"
	"html/template"
	"strings"

	"cellblock/kernels"
)

// FramePolicy is the Content-Security-Policy of a Frame's document: it may run scripts of its own, as an origin that nobody else is,
// and reach nothing. What is left of ways out by other means than fetching (preconnect, DNS, WebRTC) is closed by ConnectionAllowlist
// in browsers that know it.
const FramePolicy = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; style-src 'unsafe-inline'; " +
	"img-src data: blob:; font-src data:; media-src data: blob:; worker-src blob:; connect-src 'none'; form-action 'none'; base-uri 'none'; " +
	"frame-src 'none'; webrtc 'block'; frame-ancestors 'self'"

// ConnectionAllowlist is the value of the response header Connection-Allowlist that lets a document connect to nobody.
const ConnectionAllowlist = "()"

//go:embed frame.js
var frameScript string

//go:embed amd.js
var amdScript string

// What is framed has been made for a white page, and what it colours only could not be read on a dark one: it is on a light card, also
// in the dark. Tables of DataFrames look as those in the page do, as far as their own styles do not say other: they come later.
const frameStyle = `html{color-scheme:light}body{margin:0;padding:8px 10px;font:14px/1.45 system-ui,sans-serif;background:#fff;color:#1c1c1c;overflow-x:auto}` +
	`:where(table.dataframe,table[id^=T_]){border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}` +
	`:where(table.dataframe,table[id^=T_]) :where(th,td){padding:4px 11px;text-align:right;white-space:nowrap;border:0}` +
	`:where(table.dataframe,table[id^=T_]) :where(thead tr:last-child th){border-bottom:1px solid #dde1e7}` +
	`.cellblock-blocked{margin:0 0 8px;padding:8px 10px;border-left:3px solid #b26a00;background:#fff6e5;color:#5c3700;font-size:13px}` +
	`.cellblock-error{margin:8px 0 0;padding:8px 10px;border-left:3px solid #b3261e;background:#fdecea;color:#7a1a14;font:13px ui-monospace,monospace;overflow-wrap:anywhere}`

// FrameOf is the document in which an output that needs scripts is shown, alone. It begins with what libraries have loaded before
// it in the same kernel (Library), because each output's document is its own. It reports its height to the page around it, and
// says where something was blocked that would have come from the network, or was never there, and what its scripts throw. Where
// searched is false, libraries may lack some: not all outputs could be looked through.
func FrameOf(out kernels.Output, libraries []kernels.Output, searched bool) string {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Output</title><style>` + frameStyle + `</style><script>` + frameScript + `</script>`)
	inner := scripted(out)
	before := make([]string, 0, len(libraries))
	amd := usesModules(inner)
	for _, l := range libraries {
		before = append(before, scripted(l))
		amd = amd || usesModules(before[len(before)-1])
	}
	if amd {
		b.WriteString(`<script>` + amdScript + `</script>`)
	}
	b.WriteString(`</head><body>`)
	for _, l := range before {
		b.WriteString(`<div hidden>` + l + `</div>`)
	}
	if missesBokeh(out, libraries) {
		said := inlineBokeh
		if !searched {
			said = lostBokeh
		}
		b.WriteString(`<p class="cellblock-blocked">` + html.EscapeString(said) + `</p>`)
	}
	b.WriteString(inner + `</body></html>`)
	return b.String()
}

// usesModules tells whether HTML counts on a loader of AMD modules, as classic notebooks had one.
func usesModules(source string) bool {
	return strings.Contains(source, "require(") || strings.Contains(source, "requirejs") || strings.Contains(source, "define(")
}

// scripted is an output's HTML, and the scripts that belong to it. An SVG that is HTML's is left where it is.
func scripted(out kernels.Output) string {
	made := textOf(out.Data["text/html"])
	for _, mime := range []string{bokehLoad, "application/javascript", bokehExec} {
		source := textOf(out.Data[mime])
		if strings.TrimSpace(source) == "" {
			continue
		}
		// The script of a bundle is no HTML: the text that would end it is written in another way.
		source = scriptEnd.Replace(source)
		// It is a function's, as notebooks run it, which has its output's element; in a block, where it may declare one of its own.
		if mime == "application/javascript" {
			source = "((element) => {{" + source + "\n}})(cellblockElement())"
			made += "<div></div>"
		}
		made += "<script>" + source + "</script>"
		break
	}
	return made
}

var scriptEnd = strings.NewReplacer("</script", `<\/script`, "</SCRIPT", `<\/SCRIPT`, "<!--", `<\!--`)

// needsFrame tells whether a bundle has what only a frame can show.
func needsFrame(data map[string]json.RawMessage) bool {
	for mime := range data {
		switch mime {
		case "text/html", "application/javascript", bokehExec, bokehLoad:
			return true
		}
	}
	return false
}

// frame is the place of a frame in the page. Its height comes when it has one.
func frame(address string) string {
	return `<iframe class="frame" sandbox="allow-scripts" loading="lazy" title="Interactive output" referrerpolicy="no-referrer" src="` + html.EscapeString(address) + `"></iframe>`
}

// still is what an output that needs a frame shows on a page that has none: a picture, or what is left of its HTML without scripts and
// styles.
func still(out kernels.Output, page Page) template.HTML {
	if made, ok := pictureForm(out, page); ok {
		return made
	}
	if !framed(out.Data) {
		if made, ok := stripped(textOf(out.Data["text/html"])); ok {
			return made
		}
	}
	return remark("An interactive output, which only a page of the notebook can show.")
}
