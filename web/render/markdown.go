package render

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"cellblock/web/render/tex"
)

const (
	// maxMarkdown bounds the Markdown that is made HTML of, in bytes, and maxLinks its links: some texts take time that grows with the
	// square of their length, such as links that are begun and never ended.
	maxMarkdown, maxLinks = 64 << 10, 2000
	// maxFormula bounds a formula in a text, in bytes, and with it how far each dollar is looked from for the one that closes it.
	maxFormula = 4 << 10
)

// nested is a line that opens more quotations and lists within each other than anybody reads; each costs all that stands in it.
var nested = regexp.MustCompile(`(?m)^(?:[ \t]*(?:[>*+-]|[0-9]{1,9}[.)])){33}`)

// markdown knows tables and formulas, and leaves HTML out.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.TaskList),
	goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(formulaParser{}, 150))),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(formulaRenderer{}, 150), util.Prioritized(boxRenderer{}, 150))),
)

// Markdown is a text in Markdown as HTML, formulas between dollars as MathML. HTML in it is left out, and images are, too, but for
// those that are in the text itself (data:).
func Markdown(source string) template.HTML {
	plain := func() template.HTML { return plainPre("text", source) }
	if len(source) > maxMarkdown || strings.Count(source, "](") > maxLinks || nested.MatchString(source) {
		return plain()
	}
	return guarded(plain, func() (template.HTML, error) {
		var b bytes.Buffer
		if err := markdown.Convert([]byte(strings.ToValidUTF8(source, "\uFFFD")), &b); err != nil {
			return "", err
		}
		made, err := cleaned(prose, b.String())
		return `<div class="markdown">` + made + `</div>`, err
	})
}

// prose is what Markdown may become.
var prose = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del",
		"table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	allowLinks(p)
	p.AllowAttrs("alt").OnElements("img")
	p.AllowAttrs("src").Matching(regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$`)).OnElements("img")
	p.AllowDataURIImages()
	tex.Allow(p)
	return p
}()

// allowLinks lets links lead to the web, in a tab of their own that knows nothing of ours.
func allowLinks(p *bluemonday.Policy) {
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
}

// formula is a formula in a text.
type formula struct {
	ast.BaseInline
	source  string
	display bool
}

var formulaKind = ast.NewNodeKind("Formula")

func (*formula) Kind() ast.NodeKind              { return formulaKind }
func (f *formula) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// formulaParser finds $…$ and $$…$$. As in Jupyter, a single dollar opens a formula only before something that is no space, and
// does not close one before a digit: "from $5 to $7" has none.
type formulaParser struct{}

func (formulaParser) Trigger() []byte { return []byte{'$'} }

func (formulaParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.Position()
	rest := string(block.Value(text.NewSegment(segment.Start, min(blockEnd(block), segment.Start+maxFormula))))
	source, length, display := findFormula(rest)
	if length == 0 {
		block.SetPosition(line, segment)
		return nil
	}
	block.Advance(length)
	return &formula{source: source, display: display}
}

// blockEnd is where the lines of a block end in the source, or a place that is too far away for a formula.
func blockEnd(block text.Reader) int {
	line, segment := block.Position()
	end := segment.Stop
	for end < segment.Start+maxFormula {
		block.AdvanceLine()
		more, next := block.PeekLine()
		if more == nil {
			break
		}
		end = next.Stop
	}
	block.SetPosition(line, segment)
	return end
}

// findFormula returns the formula that a text begins with, and its length with the dollars; 0 if there is none.
func findFormula(rest string) (source string, length int, display bool) {
	if inner, ok := strings.CutPrefix(rest, "$$"); ok {
		end := strings.Index(inner, "$$")
		if end <= 0 {
			return "", 0, false
		}
		return inner[:end], end + 4, true
	}
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] != '$':
		case i == 1 || strings.ContainsAny(rest[1:2], " \t\n") || strings.ContainsAny(rest[i-1:i], " \t\n"):
			return "", 0, false
		case i+1 < len(rest) && rest[i+1] >= '0' && rest[i+1] <= '9':
			return "", 0, false
		default:
			return rest[1:i], i + 1, false
		}
	}
	return "", 0, false
}

// formulaRenderer writes formulas as MathML.
type formulaRenderer struct{}

func (formulaRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(formulaKind, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if f, ok := n.(*formula); ok && entering {
			_, _ = w.WriteString(tex.MathML(f.source, f.display)) // what fails tells its flush
		}
		return ast.WalkContinue, nil
	})
}

// boxRenderer writes the boxes of a list of tasks as characters: nobody can tick them.
type boxRenderer struct{}

func (boxRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(extensionast.KindTaskCheckBox, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if box, ok := n.(*extensionast.TaskCheckBox); ok && entering {
			_, _ = w.WriteString(map[bool]string{false: "☐ ", true: "☑ "}[box.IsChecked]) // what fails tells its flush
		}
		return ast.WalkContinue, nil
	})
}

// LaTeX is the source of formulas, with or without dollars around it, as MathML; what is no formula is shown as it stands.
func LaTeX(source string) template.HTML {
	inner := strings.TrimSpace(source)
	if len(inner) > maxMarkdown {
		return plainPre("text", source)
	}
	for _, around := range []string{"$$", "$"} {
		if len(inner) > 2*len(around) && strings.HasPrefix(inner, around) && strings.HasSuffix(inner, around) {
			inner = inner[len(around) : len(inner)-len(around)]
			break
		}
	}
	if strings.Contains(inner, "$") || strings.Contains(inner, `\begin{tabular}`) || strings.Contains(inner, `\documentclass`) {
		return plainPre("text", source) // a document
	}
	return guarded(func() template.HTML { return plainPre("text", source) }, func() (template.HTML, error) {
		made, err := cleaned(prose, tex.MathML(inner, true))
		return `<div class="formula">` + made + `</div>`, err
	})
}
