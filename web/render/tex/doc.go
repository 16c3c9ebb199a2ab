// Package tex makes MathML of formulas in LaTeX: those that SymPy, Markdown cells and IPython.display.Math write.
//
// It knows the mathematics of LaTeX and AMS that notebooks use, no macros and no documents. A command that it does not know is
// shown by its name, so nothing of a formula gets lost. What it makes has only elements of MathML Core, no attribute whose value is
// the formula's, and at most maxNodes elements. (The Go libraries for this that we know are not published as modules, or are not
// kept; a parser of what is needed is small.)
package tex

import (
	"html"
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// Bounds of one formula.
const (
	maxNodes = 20_000
	maxDepth = 60
)

// MathML is a formula as a <math> element; display sets it on a line of its own.
func MathML(source string, display bool) string {
	p := &parser{in: scan(source), display: display}
	open := `<math>`
	if display {
		open = `<math display="block">`
	}
	return open + p.all() + `</math>`
}

// Allow lets what MathML makes pass a policy.
func Allow(p *bluemonday.Policy) {
	p.AllowNoAttrs().OnElements("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder", "mover",
		"munderover", "mtable", "mtr", "mtd", "mstyle")
	p.AllowAttrs("display").Matching(regexp.MustCompile(`^block$`)).OnElements("math")
	p.AllowAttrs("stretchy", "accent", "fence").Matching(regexp.MustCompile(`^(true|false)$`)).OnElements("mo", "mover", "munder")
	p.AllowAttrs("mathvariant").Matching(regexp.MustCompile(`^normal$`)).OnElements("mi")
	p.AllowAttrs("linethickness").Matching(regexp.MustCompile(`^0$`)).OnElements("mfrac")
	p.AllowAttrs("width").Matching(regexp.MustCompile(`^-?[0-9.]+em$`)).OnElements("mspace")
	p.AllowAttrs("columnalign").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("mtd")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(unknown|cancel|left|right)$`)).OnElements("mtext", "mrow", "mtd")
}

// node is an element of a formula. Limits are sub- and superscripts that stand below and above it.
type node struct {
	html   string
	limits bool
	empty  bool
}

func element(name, text string) node {
	return node{html: "<" + name + ">" + html.EscapeString(text) + "</" + name + ">"}
}

func row(inner string) node { return node{html: "<mrow>" + inner + "</mrow>", empty: inner == ""} }
