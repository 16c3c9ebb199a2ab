package render

import (
	"html/template"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// checkSafe fails if a fragment could do anything in a page but be read: run something, fetch something, look like the page's own, or
// leave the element that it was put into.
func checkSafe(t *testing.T, of string, made template.HTML) {
	t.Helper()
	if len(made) > 4*maxHTML {
		t.Fatalf("%.80q became %d bytes", of, len(made))
	}
	doc, err := html.Parse(strings.NewReader(`<!doctype html><body><main><section>` + string(made) + `</section></main><footer></footer></body>`))
	if err != nil {
		t.Fatal(err)
	}
	inside := 0
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.CommentNode:
			t.Fatalf("%.200q: a comment in %.300s", of, made)
		case n.Type != html.ElementNode:
		case n.Data == "footer":
			if n.Parent.Data != "body" {
				t.Fatalf("%.200q swallows what follows: %.300s", of, made)
			}
		case within(n, "section"):
			inside++
			checkElement(t, of, made, n)
		case !slices.Contains([]string{"html", "head", "body", "main", "section"}, n.Data):
			t.Fatalf("%.200q gets out with <%s>: %.300s", of, n.Data, made)
		}
	}
}

func within(n *html.Node, name string) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Type == html.ElementNode && p.Data == name {
			return true
		}
	}
	return false
}

// forbidden are the elements that could do something.
var forbidden = names(`script style link meta base object embed form input textarea select video audio source svg template slot dialog title noscript frame frameset portal`)

func checkElement(t *testing.T, of string, made template.HTML, n *html.Node) {
	t.Helper()
	if forbidden[n.Data] {
		t.Fatalf("%.200q: <%s> in %.300s", of, n.Data, made)
	}
	for _, a := range n.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || a.Key == "id" || a.Key == "name" || a.Key == "srcset" || strings.HasPrefix(a.Key, "data-"):
			t.Fatalf("%.200q: attribute %s in %.300s", of, a.Key, made)
		case a.Key == "src" && !strings.HasPrefix(a.Val, "/there/") && !strings.HasPrefix(a.Val, "data:image/"):
			t.Fatalf("%.200q: loads %q", of, a.Val)
		case a.Key == "href" && !safeLink(a.Val):
			t.Fatalf("%.200q: leads to %q", of, a.Val)
		case n.Data == "iframe" && a.Key == "sandbox" && a.Val != "allow-scripts":
			t.Fatalf("%.200q: a sandbox with %q", of, a.Val)
		}
	}
	if n.Data == "iframe" && !strings.Contains(string(made), `sandbox="allow-scripts"`) {
		t.Fatalf("%.200q: a frame without a sandbox", of)
	}
}

func safeLink(address string) bool {
	for _, prefix := range []string{"/there/", "http://", "https://", "mailto:", "//"} {
		if strings.HasPrefix(strings.ToLower(address), prefix) {
			return true
		}
	}
	// what has no scheme is an address of this site, which is asked for with GET only
	return !strings.ContainsAny(address, ":")
}

// there is a page for tests.
type there struct{}

func (there) Raw(mime string) string { return "/there/raw?mime=" + template.URLQueryEscaper(mime) }
func (there) Frame() string          { return "/there/frame" }
func (there) Text(text string) template.HTML {
	return `<pre class="text">` + joined(Terminal(text)) + `</pre>`
}

// attacks are texts that try to become something else.
var attacks = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `</pre></div></section><script>alert(1)</script>`, `"><svg onload=alert(1)>`, `<!--`, `]]>`, `<plaintext>`,
	`<a href="javascript:alert(1)">x</a>`, `[x](javascript:alert(1))`, `![x](https://evil.example/x.png)`, `<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>`,
	"\x1b]8;;javascript:alert(1)\x07x\x1b]8;;\x07", "\x1b]1338;url='https://evil.example/x.png';alt='x'\x07", "\x1b[31m<b>\x1b[0m", "\x1b]1337;File=inline=1:AAAA\x07", "\x1b_bk;t=1\x07x",
	"$\\text{</mtext><script>alert(1)</script>}$", "```html\n<script>alert(1)</script>\n```", "%%html\n<script>alert(1)</script>", "\u202e<script>", "\xff\xfe<script>", "<\x00script>",
	`<style>@import 'https://evil.example'</style>`, `<base href="https://evil.example/">`, `<form action="https://evil.example"><input></form>`, `<div class="cell" id="c1" style="position:fixed">x</div>`,
	`<table><tr><td background="https://evil.example/x">x</td></tr></table>`, `<p>unclosed <b><i><table>`, `{"a":"<script>"}`, `<details open ontoggle=alert(1)>`, `<a href="//evil.example">x</a>`,
}
