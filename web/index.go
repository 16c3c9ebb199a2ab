package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
)

const indexStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em;color:#222;background:#fff}
pre{background:#f3f3f3;padding:.8em;overflow-x:auto}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}}`

var indexTemplate = template.Must(template.New("index").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>cellblock</title>
<style>` + indexStyle + `</style></head><body>
<h1>cellblock</h1>
<p>This server gives a language model long-lived, isolated Jupyter kernels over the
<a href="https://modelcontextprotocol.io">Model Context Protocol</a>. It is meant for MCP clients; there is nothing to click here.</p>
<p>Clients connect to</p><pre>{{.}}</pre>
<p>with a bearer token. For Claude Code, for example:</p>
<pre>claude mcp add --transport http cellblock {{.}} --header "Authorization: Bearer $TOKEN"</pre>
<p>In dev mode the token lies in the file <code>dev_token.txt</code> of the server's data folder; the server says where when it starts.
Whether the server is well is told at <a href="/health">/health</a>.</p>
</body></html>
`))

// indexPage tells a person who came by with a browser what this is, and a program where to go instead.
func indexPage(mcpURL string) http.Handler {
	var page bytes.Buffer
	if err := indexTemplate.Execute(&page, mcpURL); err != nil {
		panic("web: " + err.Error()) // a template and a string of ours
	}
	sum := sha256.Sum256([]byte(indexStyle))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			writeJSON(w, http.StatusOK, map[string]string{"name": "cellblock", "mcp": mcpURL})
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		w.Write(page.Bytes()) // a client that has gone away does not read it
	})
}
