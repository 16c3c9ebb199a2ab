package tex

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestMathML(t *testing.T) {
	for source, want := range map[string]string{
		`x^2`:                      `<msup><mi>x</mi><mn>2</mn></msup>`,
		`x_1^{n+1}`:                `<msubsup><mi>x</mi><mn>1</mn><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msubsup>`,
		`f''`:                      `<msup><mi>f</mi><mrow><mo>′</mo><mo>′</mo></mrow></msup>`,
		`\frac{1}{2}`:              `<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>`,
		`\sqrt[3]{x}`:              `<mroot><mrow><mi>x</mi></mrow><mrow><mrow><mn>3</mn></mrow></mrow></mroot>`,
		`\sin\alpha`:               `<mi mathvariant="normal">sin</mi><mi>α</mi>`,
		`\mathbb{R}`:               `<mrow><mi>ℝ</mi></mrow>`,
		`\text{if } x`:             "<mtext>if\u00a0</mtext><mi>x</mi>",
		`3.14`:                     `<mn>3.14</mn>`,
		`a < b`:                    `<mi>a</mi><mo>&lt;</mo><mi>b</mi>`,
		`\nosuch{x}`:               `<mtext class="unknown">\nosuch</mtext><mrow><mi>x</mi></mrow>`,
		`\left[ x \right)`:         `<mrow><mo fence="true" stretchy="true">[</mo><mrow><mi>x</mi></mrow><mo fence="true" stretchy="true">)</mo></mrow>`,
		`\begin{matrix}a & b\\c`:   `<mtable><mtr><mtd><mrow><mi>a</mi></mrow></mtd><mtd><mrow><mi>b</mi></mrow></mtd></mtr><mtr><mtd><mrow><mi>c</mi></mrow></mtd></mtr></mtable>`,
		`\sum_{i=1}^n`:             `<msubsup><mo>∑</mo>`,
		`\int\limits_0^1`:          `<msubsup><mo>∫</mo><mn>0</mn><mn>1</mn></msubsup>`,
		`a % a comment <script>`:   `<mi>a</mi>`,
		`\operatorname{rank}{(A)}`: `<mi mathvariant="normal">rank</mi>`,
		`\\`:                       `<mspace width="2em"></mspace>`,
	} {
		if got := MathML(source, false); !strings.Contains(got, want) {
			t.Errorf("%s is\n%s, want in it\n%s", source, got, want)
		}
	}
	if got := MathML(`\sum_{i=1}^n i`, true); !strings.HasPrefix(got, `<math display="block"><mrow><mrow><munderover><mo>∑</mo>`) {
		t.Errorf("a sum on a line of its own: %s", got)
	}
}

// wellFormed tells whether a text is one XML element whose text and attributes are escaped.
func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func FuzzMathML(f *testing.F) {
	for _, seed := range []string{
		`x^2_1'`, `\frac{a}{\sqrt[n]{b}}`, `\begin{cases}1 & x<0\\0\end{cases}`, `\left(\begin{pmatrix}1&2\\3&4\end{pmatrix}\right.`, `{{{`, `}`, `\`, `^_^_`,
		`<img src=x onerror=alert(1)>`, `\text{</mtext><script>}`, `\mathrm{"'<>&}`, `\not`, `\overset`, `\begin`, `\end{x}`, strings.Repeat("{", 100), strings.Repeat(`\frac`, 100), "\xff$",
	} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, source string, display bool) {
		if len(source) > 4000 {
			return
		}
		source = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0xfffe || r == 0xffff || r == 0xfffd {
				return ' ' // what XML cannot have
			}
			return r
		}, strings.ToValidUTF8(source, ""))
		made := MathML(source, display)
		if err := wellFormed(made); err != nil {
			t.Fatalf("%q: %v\n%s", source, err, made)
		}
		if len(made) > 200*(len(source)+20) {
			t.Fatalf("%d bytes became %d", len(source), len(made))
		}
	})
}
