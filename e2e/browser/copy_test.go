package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// Code, texts and tables are copied by buttons beside them, by mouse and by key, all of a text that is folded, and also where the browser
// gives the page no clipboard. Of a table the fields are apart by tabs, as a spreadsheet takes them.
func TestCopy(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "copied", "for i in range(100):\n    print('line', i)")
	s.python(t, c, "copied", "1/0")
	s.python(t, c, "copied", "'a value'")
	s.python(t, c, "copied", "from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>')")
	s.python(t, c, "copied", "import pandas as pd\npd.DataFrame([[1, 2.5, 'a  b'], [3, 4, None], [5, 6, 'é']], index=pd.MultiIndex.from_tuples([('x', 1), ('x', 2), ('y', 1)]),\n"+
		"    columns=pd.MultiIndex.from_tuples([('n', 'p'), ('n', 'q'), ('t', 'r')]))")
	p := s.signIn(t)
	p.open("/s/copied")
	p.untilCell(4, "cell.querySelector('.picture')")
	if p.count("#c3 .copy") != 2 || eval[bool](p, "document.querySelector('#c4 .item > .copy').checkVisibility()") {
		t.Error("there are other buttons than those of code and texts")
	}
	for _, clipboard := range []string{"{writeText: async (text) => { globalThis.copied = text; }}", "undefined"} {
		eval[bool](p, "(Object.defineProperty(navigator, 'clipboard', {configurable: true, value: "+clipboard+"}), true)")
		eval[bool](p, "(document.oncopy = () => { globalThis.copied = document.activeElement.value; }, true)")
		for _, one := range []struct{ button, is string }{
			{"#c1 .copied > .copy", "copied === \"for i in range(100):\\n    print('line', i)\""},
			{"#c1 .item > .copy", "copied === Array.from({length: 100}, (_, i) => `line ${i}`).join('\\n')"},
			{"#c2 .item > .copy", "copied.startsWith('ZeroDivisionError') && copied.includes('1/0')"},
			{"#c3 .item > .copy", "copied === \"'a value'\""},
			{"#c5 .item > .copy", `copied === '\t\tn\t\tt\n\t\tp\tq\tr\nx\t1\t1\t2.5\ta b\n\t2\t3\t4.0\tNone\ny\t1\t5\t6.0\té'`},
		} {
			eval[bool](p, "(globalThis.copied = '', document.querySelector('#follow[aria-pressed=true]')?.click(), true)")
			p.do(chromedp.ScrollIntoView(one.button, chromedp.ByQuery), chromedp.Focus(one.button, chromedp.ByQuery))
			p.key("Enter")
			p.until(one.is)
			p.until(fmt.Sprintf("getComputedStyle(document.querySelector(%s), '::before').content === '\"Copied\"'", quoted(one.button)))
			p.until(focused(one.button))
			p.until("[...document.querySelectorAll('[role=status]')].some((node) => node.textContent === 'Copied')")
		}
	}
	p.click("#c3 .copied > .copy")
	p.until("copied === \"'a value'\"")
}
