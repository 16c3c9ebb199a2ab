package tex

import (
	"html"
	"strings"
)

// command is the element that a command makes with its arguments.
func (p *parser) command(name string) node {
	switch name {
	case `\frac`, `\dfrac`, `\tfrac`, `\cfrac`:
		return node{html: "<mfrac>" + p.argument().html + p.argument().html + "</mfrac>"}
	case `\binom`, `\dbinom`, `\tbinom`:
		return row(`<mo>(</mo><mfrac linethickness="0">` + p.argument().html + p.argument().html + `</mfrac><mo>)</mo>`)
	case `\sqrt`:
		if degree := p.in.option(); degree != "" {
			return node{html: "<mroot>" + p.argument().html + p.part(degree).html + "</mroot>"}
		}
		return node{html: "<msqrt>" + p.argument().html + "</msqrt>"}
	case `\left`:
		return p.fenced()
	case `\begin`:
		return p.environment(p.in.raw())
	case `\text`, `\textrm`, `\textbf`, `\textit`, `\texttt`, `\mbox`, `\mathtt`:
		return element("mtext", strings.ReplaceAll(p.in.raw(), " ", "\u00a0"))
	case `\mathrm`, `\operatorname`, `\operatorname*`, `\mathop`, `\rm`:
		return node{html: `<mi mathvariant="normal">` + html.EscapeString(unmarked(p.in.raw())) + `</mi>`, limits: name == `\operatorname*`}
	case `\overset`, `\stackrel`:
		above := p.argument()
		return node{html: "<mover>" + p.argument().html + above.html + "</mover>"}
	case `\underset`:
		below := p.argument()
		return node{html: "<munder>" + p.argument().html + below.html + "</munder>"}
	case `\big`, `\Big`, `\bigg`, `\Bigg`, `\bigl`, `\bigr`, `\Bigl`, `\Bigr`, `\biggl`, `\biggr`, `\middle`:
		return node{html: "<mo>" + p.delimiter() + "</mo>"}
	case `\pmod`:
		return row(`<mspace width="1em"></mspace><mo>(</mo><mi mathvariant="normal">mod</mi><mspace width="0.33em"></mspace>` + p.argument().html + `<mo>)</mo>`)
	case `\not`:
		return row(p.argument().html + "<mo≯</mo>")
	case `\tag`, `\label`, `\color`, `\hspace`, `\phantom`:
		p.in.raw()
		return row("")
	}
	return p.named(name)
}

// named is a command that one of the tables knows.
func (p *parser) named(name string) node {
	if ignored[name] {
		return row("")
	}
	if width, ok := spaces[name]; ok {
		return space(width)
	}
	if accent, ok := accents[name]; ok {
		return node{html: `<mover accent="true">` + p.argument().html + `<mo stretchy="` + accent.stretchy + `">` + accent.sign + `</mo></mover>`}
	}
	if sign, ok := underneath[name]; ok {
		return node{html: `<munder>` + p.argument().html + `<mo stretchy="true">` + sign + `</mo></munder>`, limits: true}
	}
	if alphabet, ok := alphabets[name]; ok {
		return node{html: "<mrow>" + alphabet.letters(unmarked(p.in.raw())) + "</mrow>"}
	}
	if letter, ok := letters[name]; ok {
		return element("mi", letter)
	}
	if sign, ok := operators[name]; ok {
		return node{html: "<mo>" + html.EscapeString(sign) + "</mo>"}
	}
	if sign, ok := large[name]; ok {
		return node{html: "<mo>" + sign + "</mo>", limits: !strings.Contains(name, "int")}
	}
	if function, ok := functions[name]; ok {
		return node{html: `<mi mathvariant="normal">` + function + `</mi>`, limits: limited[name]}
	}
	if len(name) == 2 && strings.Contains(`\{}$%&#_|`, name[1:]) {
		return element("mo", strings.Replace(name[1:], "|", "‖", 1))
	}
	return node{html: `<mtext class="unknown">` + html.EscapeString(name) + `</mtext>`}
}

// unmarked is the text of an argument that is a name: without braces, with spaces and signs for what stands for them.
func unmarked(text string) string {
	return strings.NewReplacer(`\,`, "\u2009", `\ `, " ", `\_`, "_", `\&`, "&", "{", "", "}", "", `\`, "").Replace(text)
}

// fenced is what stands between \left and \right, whose delimiters grow with it.
func (p *parser) fenced() node {
	left := p.delimiter()
	inner := p.row()
	right := ""
	if p.in.peek() == `\right` {
		p.in.next()
		right = p.delimiter()
	}
	return row(fence(left) + inner.html + fence(right))
}

func fence(sign string) string {
	if sign == "" {
		return ""
	}
	return `<mo fence="true" stretchy="true">` + sign + `</mo>`
}

// delimiter reads one delimiter; a dot is none.
func (p *parser) delimiter() string {
	token := p.in.next()
	if token == "." {
		return ""
	}
	if sign, ok := operators[token]; ok {
		return html.EscapeString(sign)
	}
	return html.EscapeString(strings.Replace(strings.TrimPrefix(token, `\`), "|", map[bool]string{true: "‖", false: "|"}[token == `\|`], 1))
}

// environments are the delimiters around a table.
var environments = map[string][2]string{
	"matrix": {}, "smallmatrix": {}, "pmatrix": {"(", ")"}, "bmatrix": {"[", "]"}, "Bmatrix": {"{", "}"}, "vmatrix": {"|", "|"}, "Vmatrix": {"‖", "‖"},
	"cases": {"{", ""}, "array": {}, "aligned": {}, "align": {}, "split": {}, "gathered": {}, "gather": {}, "equation": {}, "eqnarray": {}, "alignat": {}, "multline": {}, "subarray": {},
}

// environment is what stands between \begin{name} and \end{name}: a table, but for what has one cell.
func (p *parser) environment(name string) node {
	name = strings.TrimSuffix(name, "*")
	around := environments[name]
	if name == "array" || name == "alignat" || name == "subarray" {
		p.in.option()
		p.in.raw() // the columns' alignment
	}
	if name != "align" && name != "aligned" && name != "split" && name != "eqnarray" && name != "equation" && name != "gather" && name != "multline" {
		defer func(was bool) { p.display = was }(p.display)
		p.display = false
	}
	var table strings.Builder
	table.WriteString("<mtable><mtr>")
	for column := 0; ; column++ {
		inner := p.row().html
		table.WriteString("<mtd" + aligned(name, column) + ">" + inner + "</mtd>")
		switch p.in.next() {
		case "&":
			continue
		case `\\`, `\cr`:
			p.in.option()
			if p.in.peek() == `\end` {
				continue
			}
			table.WriteString("</mtr><mtr>")
			column = -1
			continue
		case `\end`:
			p.in.raw()
		}
		break
	}
	table.WriteString("</mtr></mtable>")
	return row(fence(around[0]) + table.String() + fence(around[1]))
}

// aligned says how a column of an environment is aligned.
func aligned(environment string, column int) string {
	switch environment {
	case "cases":
		return ` class="left"`
	case "align", "aligned", "split", "eqnarray", "alignat":
		return []string{` class="right"`, ` class="left"`}[column%2]
	}
	return ""
}
