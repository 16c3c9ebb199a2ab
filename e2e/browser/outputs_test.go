package browser

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"cellblock/kernels/kernelstest"
)

// every is a session with an output of every kind: code by what it shows, and an expression that is true when the page shows it.
var every = []struct{ name, code, shows string }{
	{"streams", "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\nprint('\\x1b[31mred\\x1b[0m \\x1b[1;38;5;28mgreen\\x1b[0m')",
		`cell.querySelector('.stdout pre').innerText.includes('to stdout') && cell.querySelector('.stderr pre').innerText.includes('to stderr') && cell.querySelector('.term-fg31')?.innerText === 'red' && cell.querySelector('.term-fg32')?.innerText === 'green'`},
	{"a DataFrame", "import pandas as pd\npd.DataFrame({'city': ['Oslo', 'Rome'], 'people': [709037, 2755309]})", `cell.querySelector('table.dataframe td')?.innerText === 'Oslo'`},
	{"a figure", "import matplotlib.pyplot as plt\nplt.figure(figsize=(5, 2.5)); plt.plot([1, 3, 2, 4]); plt.title('a plot'); plt.show()",
		`cell.querySelector('.picture img')?.complete && cell.querySelector('.picture img').naturalWidth > 100`},
	{"an SVG", "from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"120\" height=\"40\"><rect width=\"120\" height=\"40\" rx=\"8\" fill=\"teal\"/></svg>')",
		`cell.querySelector('.picture img')?.naturalWidth === 120`},
	{"Markdown", "from IPython.display import Markdown\nMarkdown('## A heading\\n\\nSome *text*, a formula $e^{i\\\\pi}+1=0$ and\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |')",
		`cell.querySelector('.markdown h2')?.innerText === 'A heading' && cell.querySelector('.markdown math msup') && cell.querySelector('.markdown td')`},
	{"LaTeX", "from IPython.display import Math\nMath(r'\\int_0^\\infty \\frac{x^3}{e^x-1}\\,dx = \\frac{\\pi^4}{15}')", `cell.querySelector('.formula math mfrac')`},
	{"SymPy", "import sympy as sp\nsp.init_printing(use_latex='mathjax')\nx = sp.symbols('x')\nsp.Integral(sp.sqrt(1/x), x)", `cell.querySelector('.formula math msqrt')`},
	{"JSON", "from IPython.display import JSON\nJSON({'name': 'x', 'items': [1, 2, {'deep': True}]})", `cell.querySelector('.json details[open] .json-name')?.innerText === 'name'`},
	{"an error", "import json\ndef own(): return json.loads('{')\nown()",
		`cell.querySelector('.error-name')?.innerText.includes('JSONDecodeError') && cell.querySelectorAll('.frame-of-error[open]').length >= 2 && cell.querySelector('.frames-of-libraries:not([open])')`},
	{"many lines", "for i in range(5000): print('line', i)", `cell.querySelector('.unfold')?.innerText === 'Show all 5,000 lines' && cell.innerText.includes('line 4999') && !cell.innerText.includes('line 2500')`},
	{"HTML with a style", "from IPython.display import HTML\nHTML('<p style=\"color:purple;margin:0\">styled</p>')", `parseInt(cell.querySelector('iframe')?.style.height) > 15`},
	{"Plotly", "import plotly.graph_objects as go, plotly.io as pio\npio.renderers.default = 'notebook'\ngo.Figure(go.Scatter(y=[1, 3, 2])).show()", `parseInt(cell.querySelector('iframe')?.style.height) > 300`},
	{"Plotly again", "go.Figure(go.Bar(y=[3, 1, 2])).show()", `parseInt(cell.querySelector('iframe')?.style.height) > 300`},
	{"Altair", "import altair as alt\nalt.renderers.enable('html')\nalt.Chart(pd.DataFrame({'a': [1, 2], 'b': [3, 4]})).mark_bar().encode(x='a:O', y='b:Q')", `parseInt(cell.querySelector('iframe')?.style.height) > 40`},
	{"what no browser shows", "from IPython.display import display\ndisplay({'application/pdf': 'AAAA'}, raw=True)", `cell.querySelector('a[download]')?.innerText === 'application/pdf'`},
	{"streams in turn", "import sys\nfor i in range(3):\n    print('turn', i)\n    print('turn', i, file=sys.stderr)",
		`cell.querySelectorAll('.item').length > 1 && [...cell.querySelectorAll('.item')].every((item) => !item.previousElementSibling || Math.abs(item.getBoundingClientRect().top - item.previousElementSibling.getBoundingClientRect().bottom) < 1)`},
	{"lines from right to left", "print('\u05e9\u05dc\u05d5\u05dd, world')\nprint('world')", `(() => {
		const pre = cell.querySelector('.stdout pre'), text = pre.firstChild, box = pre.getBoundingClientRect(), range = new Range();
		const at = (n) => { range.setStart(text, n); range.setEnd(text, n + 1); return range.getBoundingClientRect(); };
		return box.right - at(0).right < 2 && at(text.data.lastIndexOf('world')).left - box.left < 2;
	})()`},
}

// A session with an output of every kind shows them all, and the charts of libraries as Debian has them run in their frames.
func TestEveryKindOfOutput(t *testing.T) {
	for _, module := range []string{"plotly", "altair", "sympy", "pandas", "matplotlib"} {
		kernelstest.Need(t, exec.Command("/usr/bin/python3", "-c", "import "+module).Run() == nil, "Python's "+module+" (Debian's package python3-"+module+")")
	}
	s := shared(t)
	c := s.mcp(t)
	for _, e := range every {
		s.python(t, c, "every", e.code)
	}
	p := s.signIn(t)
	p.expects("Content Security Policy", "Content-Security-Policy") // Altair's frame is refused its CDN
	p.open("/s/every")
	for i, e := range every {
		p.untilCell(i+1, e.shows)
	}
	const drawn = `document.querySelector('.plot-container .main-svg') !== null`
	p.frame(12).until(drawn)
	p.frame(13).until(drawn)
	p.frame(14).until(`document.querySelector('.cellblock-blocked')?.innerText.includes('cdn.jsdelivr.net')`)
	p.showCell(10)
	p.do(chromedp.Evaluate("document.querySelector('#c10 .unfold').click()", nil))
	p.untilCell(10, "cell.innerText.includes('line 2500')")
	p.showCell(3)
	p.do(chromedp.Evaluate("document.querySelector('#c3 .enlarge').click()", nil))
	p.until("document.querySelector('dialog.lightbox[open] img')?.complete")
	p.do(chromedp.Evaluate("document.querySelector('dialog.lightbox button').click()", nil))
	p.until("!document.querySelector('dialog.lightbox')")
}

// untilCell waits until an expression is true of a cell, which is kept in sight whatever grows around it: what is far away is not
// loaded, and has no text.
func (p *tab) untilCell(n int, expression string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(cell => {
		document.querySelector('#follow[aria-pressed=true]')?.click();
		cell?.scrollIntoView({block: 'center'});
		return cell && %s;
	})(document.querySelector('#c%d'))`, expression, n))
}

// showCell brings a cell into sight.
func (p *tab) showCell(n int) {
	p.t.Helper()
	p.untilCell(n, "true")
}

// frame is the document of a cell's output that needs scripts: a tab of its own to the browser, as it shares no origin with the page.
func (p *tab) frame(n int) *tab {
	p.t.Helper()
	p.showCell(n)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		targets, err := chromedp.Targets(p.ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, found := range targets {
			if found.Type == "iframe" && found.BrowserContextID == p.own && strings.Contains(found.URL, fmt.Sprintf("/cells/%d/", n)) {
				return p.into(found)
			}
		}
	}
	p.t.Fatalf("cell %d has no frame", n)
	return nil
}

func (p *tab) into(found *target.Info) *tab {
	ctx, cancel := chromedp.NewContext(p.ctx, chromedp.WithTargetID(found.TargetID))
	p.t.Cleanup(cancel)
	return &tab{t: p.t, site: p.site, ctx: ctx, own: p.own}
}

// Every colour of a terminal can be read on every ground that it has, light and dark.
func TestColoursOfTerminals(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "colours", "for f in [*range(30, 38), *range(90, 98)]:\n    for b in [*range(40, 48), *range(100, 108)]: print(f'\\x1b[{f};{b}m {f} on {b} \\x1b[0m', end='')\n    print()")
	p := s.signIn(t)
	for _, scheme := range []string{"light", "dark"} {
		p.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		p.open("/s/colours")
		p.untilCell(1, "cell.innerText.includes('97 on 107')")
		poor := eval[[]string](p, `(() => {
			const light = (colour) => colour.match(/\d+/g).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
			const spans = [...document.querySelectorAll('#c1 .stdout span')];
			const contrast = ({color, backgroundColor}) => (([a, b]) => (b + 0.05) / (a + 0.05))([light(color), light(backgroundColor)].sort((a, b) => a - b));
			if (spans.length < 256) return ['there are ' + spans.length];
			return spans.filter((span) => contrast(getComputedStyle(span)) < 4.5).map((span) => span.className + ' ' + contrast(getComputedStyle(span)));
		})()`)
		if len(poor) > 0 {
			t.Errorf("%s: %q", scheme, poor)
		}
	}
}
