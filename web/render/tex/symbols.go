package tex

import (
	"html"
	"strings"
)

// accent is a sign above its argument.
type accent struct{ sign, stretchy string }

var accents = map[string]accent{
	`\hat`: {"^", "false"}, `\widehat`: {"^", "true"}, `\bar`: {"¯", "false"}, `\overline`: {"¯", "true"}, `\tilde`: {"~", "false"}, `\widetilde`: {"~", "true"},
	`\vec`: {"→", "false"}, `\overrightarrow`: {"→", "true"}, `\dot`: {"˙", "false"}, `\ddot`: {"¨", "false"}, `\check`: {"ˇ", "false"}, `\breve`: {"˘", "false"},
	`\acute`: {"´", "false"}, `\grave`: {"`", "false"}, `\mathring`: {"˚", "false"}, `\overbrace`: {"⏞", "true"},
}

var underneath = map[string]string{`\underline`: "_", `\underbrace`: "⏟"}

var spaces = map[string]string{
	`\,`: "0.17em", `\thinspace`: "0.17em", `\:`: "0.22em", `\>`: "0.22em", `\;`: "0.28em", `\!`: "-0.17em", `\ `: "0.33em", `\quad`: "1em", `\qquad`: "2em",
}

var ignored = set(`\displaystyle \textstyle \scriptstyle \scriptscriptstyle \limits \nolimits \nonumber \notag \hline \mathstrut \bf \it \boldmath \right \end \left.`)

// functions are names that are set upright; limited are those with limits below.
var functions, limited = names(`arccos arcsin arctan arg cos cosh cot coth csc deg dim exp hom ker lg ln log sec sin sinh tan tanh asin acos atan erf`),
	set(`\lim \limsup \liminf \max \min \sup \inf \det \gcd \Pr \argmax \argmin`)

func init() {
	for name := range limited {
		functions[name] = name[1:]
	}
	functions[`\limsup`], functions[`\liminf`], functions[`\bmod`], functions[`\mod`] = "lim sup", "lim inf", "mod", "mod"
}

// letters are single letters, set in italics where MathML does so.
var letters = pairs(`alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ varkappa ϰ lambda λ mu μ nu ν xi ξ
	omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω
	Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
	infty ∞ partial ∂ nabla ∇ hbar ℏ ell ℓ Re ℜ Im ℑ aleph ℵ wp ℘ emptyset ∅ varnothing ∅ imath ı jmath ȷ top ⊤ bot ⊥ degree ° dagger † ddagger ‡`)

// operators are signs; delimiters are among them.
var operators = pairs(`cdot ⋅ times × div ÷ pm ± mp ∓ ast ∗ star ⋆ circ ∘ bullet • oplus ⊕ ominus ⊖ otimes ⊗ odot ⊙ wedge ∧ land ∧ vee ∨ lor ∨ cap ∩ cup ∪ setminus ∖
	leq ≤ le ≤ geq ≥ ge ≥ neq ≠ ne ≠ ll ≪ gg ≫ approx ≈ sim ∼ simeq ≃ cong ≅ equiv ≡ propto ∝ prec ≺ succ ≻ leqslant ⩽ geqslant ⩾ lt < gt >
	in ∈ notin ∉ ni ∋ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ forall ∀ exists ∃ nexists ∄ neg ¬ lnot ¬ mid ∣ nmid ∤ parallel ∥ perp ⊥ angle ∠ therefore ∴ because ∵
	to → rightarrow → leftarrow ← gets ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ iff ⟺ implies ⟹ mapsto ↦ longrightarrow ⟶ longleftarrow ⟵ Longrightarrow ⟹
	uparrow ↑ downarrow ↓ hookrightarrow ↪ rightharpoonup ⇀ rightleftharpoons ⇌
	ldots … dots … cdots ⋯ vdots ⋮ ddots ⋱ dotsc … dotsb ⋯ colon : prime ′ backslash \ models ⊨ vdash ⊢ asymp ≍ doteq ≐ triangleq ≜ coloneqq ≔ square □ Box □ triangle △ checkmark ✓
	langle ⟨ rangle ⟩ lbrace { rbrace } lbrack [ rbrack ] lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ vert | lvert | rvert | Vert ‖ lVert ‖ rVert ‖ surd √`)

// large are operators that grow in displayed formulas, most of them with limits.
var large = pairs(`sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ oint ∮ bigcup ⋃ bigcap ⋂ bigvee ⋁ bigwedge ⋀ bigoplus ⨁ bigotimes ⨂ bigodot ⨀ bigsqcup ⨆`)

// alphabet is where the mathematical letters of a style begin in Unicode; its exceptions stand elsewhere. Zero is where there are none.
type alphabet struct {
	upper, lower, digit rune
	exceptions          map[rune]rune
}

var alphabets = map[string]alphabet{
	`\mathbf`: bold, `\boldsymbol`: bold, `\bm`: bold, `\mathbb`: {0x1D538, 0x1D552, 0x1D7D8, map[rune]rune{'C': 'ℂ', 'H': 'ℍ', 'N': 'ℕ', 'P': 'ℙ', 'Q': 'ℚ', 'R': 'ℝ', 'Z': 'ℤ'}},
	`\mathcal`: script, `\mathscr`: script,
	`\mathfrak`: {0x1D504, 0x1D51E, 0, map[rune]rune{'C': 'ℭ', 'H': 'ℌ', 'I': 'ℑ', 'R': 'ℜ', 'Z': 'ℨ'}},
	`\mathsf`:   {0x1D5A0, 0x1D5BA, 0x1D7E2, nil}, `\mathit`: {}, `\mathnormal`: {},
}

var (
	bold   = alphabet{0x1D400, 0x1D41A, 0x1D7CE, nil}
	script = alphabet{0x1D49C, 0x1D4B6, 0, map[rune]rune{'B': 'ℬ', 'E': 'ℰ', 'F': 'ℱ', 'H': 'ℋ', 'I': 'ℐ', 'L': 'ℒ', 'M': 'ℳ', 'R': 'ℛ', 'e': 'ℯ', 'g': 'ℊ', 'o': 'ℴ'}}
)

// letters writes each character of a text in the alphabet's style; commands in it are gone, but for Greek letters.
func (a alphabet) letters(text string) string {
	if greek, ok := letters[`\`+text]; ok {
		text = greek
	}
	var b strings.Builder
	for _, r := range text {
		b.WriteString("<mi>" + html.EscapeString(string(a.styled(r))) + "</mi>")
	}
	return b.String()
}

func (a alphabet) styled(r rune) rune {
	if special, ok := a.exceptions[r]; ok {
		return special
	}
	switch {
	case r >= 'A' && r <= 'Z' && a.upper != 0:
		return a.upper + r - 'A'
	case r >= 'a' && r <= 'z' && a.lower != 0:
		return a.lower + r - 'a'
	case r >= '0' && r <= '9' && a.digit != 0:
		return a.digit + r - '0'
	}
	return r
}

// pairs reads a table of names and what they stand for.
func pairs(table string) map[string]string {
	fields, m := strings.Fields(table), map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		m[`\`+fields[i]] = fields[i+1]
	}
	return m
}

// names reads a table of names that stand for themselves.
func names(table string) map[string]string {
	m := map[string]string{}
	for _, name := range strings.Fields(table) {
		m[`\`+name] = name
	}
	return m
}

func set(table string) map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(table) {
		m[name] = true
	}
	return m
}
