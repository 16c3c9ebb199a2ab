package tex

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parser makes a formula's elements while it reads it.
type parser struct {
	in      *tokens
	display bool
	depth   int
	nodes   int
}

// all is the whole formula; a token that closes nothing is left out.
func (p *parser) all() string {
	var b strings.Builder
	b.WriteString("<mrow>")
	for {
		b.WriteString(p.row().html)
		switch p.in.next() {
		case "":
			b.WriteString("</mrow>")
			return b.String()
		case `\\`, "&": // outside of any table
			b.WriteString(`<mspace width="2em"></mspace>`)
		}
	}
}

// stops are the tokens at which a row ends.
var stops = []string{"", "}", "&", `\\`, `\end`, `\right`, `\cr`}

// row is what stands until something closes it, which is left to be read.
func (p *parser) row() node {
	var b strings.Builder
	for !slices.Contains(stops, p.in.peek()) && p.nodes < maxNodes {
		b.WriteString(p.scripted().html)
	}
	if p.nodes >= maxNodes {
		p.in.at = len(p.in.source)
	}
	return row(b.String())
}

// scripted is one element with what is above and below it.
func (p *parser) scripted() node {
	base := row("")
	if next := p.in.peek(); next != "^" && next != "_" && next != "'" {
		base = p.atom()
	}
	var sub, sup string
	for {
		switch next := p.in.peek(); {
		case next == "_" && sub == "":
			p.in.next()
			sub = p.argument().html
		case next == "^" && sup == "":
			p.in.next()
			sup = p.argument().html
		case next == "'" && (sup == "" || strings.HasSuffix(sup, "′</mo>")):
			p.in.next()
			sup += "<mo>′</mo>"
		case next == `\limits` || next == `\nolimits`:
			p.in.next()
			base.limits = next == `\limits`
		default:
			if strings.Count(sup, "<mo>′</mo>") > 1 {
				sup = row(sup).html
			}
			return p.attach(base, sub, sup)
		}
	}
}

func (p *parser) attach(base node, sub, sup string) node {
	p.nodes++
	below, above, both := "msub", "msup", "msubsup"
	if base.limits && p.display {
		below, above, both = "munder", "mover", "munderover"
	}
	switch {
	case sub != "" && sup != "":
		return node{html: "<" + both + ">" + base.html + sub + sup + "</" + both + ">"}
	case sub != "":
		return node{html: "<" + below + ">" + base.html + sub + "</" + below + ">"}
	case sup != "":
		return node{html: "<" + above + ">" + base.html + sup + "</" + above + ">"}
	}
	return base
}

// argument is a group in braces, or a single element.
func (p *parser) argument() node {
	if slices.Contains(stops, p.in.peek()) {
		return row("")
	}
	return p.atom()
}

// part reads a row of a text of its own: an argument that was read as it stands.
func (p *parser) part(source string) node {
	inner := &parser{in: scan(source), display: false, depth: p.depth + 1, nodes: p.nodes}
	if inner.depth > maxDepth {
		return element("mtext", source)
	}
	made := inner.all()
	p.nodes = inner.nodes
	return node{html: made}
}

// atom is one element: a letter, a number, a sign, a group or a command with its arguments.
func (p *parser) atom() node {
	p.nodes++
	if p.depth++; p.depth > maxDepth {
		p.depth--
		p.in.at = len(p.in.source)
		return element("mtext", "…")
	}
	defer func() { p.depth-- }()
	token := p.in.next()
	first, _ := utf8.DecodeRuneInString(token)
	switch {
	case token == "{":
		inner := p.row()
		if p.in.peek() == "}" {
			p.in.next()
		}
		return inner
	case token[0] == '\\':
		return p.command(token)
	case isDigit(token[0]):
		return element("mn", token)
	case unicode.IsLetter(first):
		return element("mi", token)
	case token == "~":
		return space("0.33em")
	case token == "-":
		return element("mo", "−")
	case token == "*":
		return element("mo", "∗")
	case strings.Contains("()[]|/", token):
		return node{html: `<mo stretchy="false">` + token + `</mo>`}
	}
	return element("mo", token)
}

func space(width string) node { return node{html: `<mspace width="` + width + `"></mspace>`} }
