package render

import (
	"html/template"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxTable bounds the HTML that the page itself shows, in bytes; what is larger gets a frame, which bears it.
const maxTable = 1 << 20

// simple are the elements of which a page can show HTML as it is; what has others, or styles, is shown in a frame.
var simple = names(`div span p br hr b i u s em strong small sub sup code pre kbd samp var blockquote ul ol li dl dt dd h1 h2 h3 h4 h5 h6
	table caption colgroup col thead tbody tfoot tr th td a abbr del ins mark html head body`)

// harmless are the attributes that change nothing about that. What a style says of a table's alignment may be missing.
var harmless = names(`class id border align halign valign colspan rowspan span scope start title lang dir href`)

func names(table string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(table) {
		set[name] = true
	}
	return set
}

// HTML is HTML that is no more than text, lists and tables, as those of pandas are; false for any other, which needs a frame.
func HTML(source string) (template.HTML, bool) {
	if len(source) > maxTable || !isSimple(source) {
		return "", false
	}
	made, err := tablesOf(source)
	return made, err == nil
}

// stripped is what is left of any HTML when nothing but simple elements is; false where that is no text.
func stripped(source string) (template.HTML, bool) {
	made, err := tablesOf(source)
	if err != nil {
		return "", false
	}
	root, err := html.Parse(strings.NewReader(string(made)))
	return made, err == nil && strings.TrimSpace(contentOf(root)) != ""
}

func tablesOf(source string) (template.HTML, error) {
	made, err := cleaned(tables, strings.ToValidUTF8(source, "\uFFFD"), func(n *html.Node) {
		if n.DataAtom == atom.Table {
			markColumns(n)
		}
	})
	return `<div class="html" tabindex="0">` + made + `</div>`, err
}

// cleaned is what a policy leaves of HTML, with every element closed that was opened, and none that was not; marks add to its nodes.
func cleaned(p *bluemonday.Policy, source string, marks ...func(*html.Node)) (template.HTML, error) {
	nodes, err := html.ParseFragment(strings.NewReader(p.Sanitize(source)), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, n := range nodes {
		for _, mark := range marks {
			mark(n)
			for d := range n.Descendants() {
				mark(d)
			}
		}
		if err := html.Render(&b, n); err != nil {
			return "", err
		}
	}
	return template.HTML(b.String()), nil
}

// isSimple tells whether HTML keeps its look when nothing but simple elements is left of it.
func isSimple(source string) bool {
	z := html.NewTokenizer(strings.NewReader(source))
	for inStyle := false; ; {
		switch z.Next() {
		case html.ErrorToken:
			return true
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.Data == "style" && scoped(t) {
				inStyle = true
				continue
			}
			if inStyle || !simple[t.Data] || !plainAttributes(t) {
				return false
			}
		case html.EndTagToken:
			if z.Token().Data == "style" {
				inStyle = false
			}
		}
	}
}

// scoped tells whether a style is the one that pandas writes before each table.
func scoped(t html.Token) bool {
	for _, a := range t.Attr {
		if a.Key == "scoped" {
			return true
		}
	}
	return false
}

var alignment = regexp.MustCompile(`^\s*text-align:\s*(left|right|center);?\s*$`)

func plainAttributes(t html.Token) bool {
	for _, a := range t.Attr {
		switch {
		case a.Key == "style" && alignment.MatchString(a.Val):
		case !harmless[a.Key]:
			return false
		}
	}
	return true
}

// tables is what may be left of simple HTML: neither names nor styles of its own, so that nothing of it can pass as ours.
var tables = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	for name := range simple {
		switch name {
		case "html", "head", "body", "a":
		default:
			p.AllowNoAttrs().OnElements(name)
		}
	}
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^dataframe$`)).OnElements("table")
	p.AllowAttrs("colspan", "rowspan", "span", "start").Matching(bluemonday.Integer).OnElements("td", "th", "col", "colgroup", "ol")
	p.AllowAttrs("scope").Matching(regexp.MustCompile(`^(row|col|rowgroup|colgroup)$`)).OnElements("th")
	allowLinks(p)
	return p
}()
