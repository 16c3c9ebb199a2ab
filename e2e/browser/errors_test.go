package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// Who works while the server cannot be reached is told so once, in sentences, beside the editor, and no longer than it is so.
func TestUnreachedServerIsToldOnce(t *testing.T) {
	l, p := shared(t).signInByLine(t)
	p.site.python(t, p.site.mcp(t), "away", "x = 1\nfor i in range(39): print(i)")
	p.desk("away")
	p.untilText("#state", "idle")
	l.cut()
	eval[bool](p, `(() => {
		const ask = fetch;
		globalThis.failed = 0;
		globalThis.fetch = (path, options) => ask(path, options).catch((error) => { if (path.endsWith('/run')) failed++; throw error; });
		return true;
	})()`)
	p.write("x")
	for range 3 {
		p.key("Enter", ctrl)
	}
	p.until("failed === 3")
	p.until(`[...document.querySelectorAll('.toast.problem span')].map(({textContent}) => textContent).join('|') ===
		'The server cannot be reached. It may be starting again; try once more in a moment.'`)
	if !eval[bool](p, "document.querySelector('.toasts').getBoundingClientRect().bottom <= document.querySelector('.code-box').getBoundingClientRect().top") {
		t.Error("the editor is covered")
	}
	l.mend()
	p.until("!document.querySelector('.toast')")
	p.do(chromedp.Focus("#code", chromedp.ByQuery))
	p.key("Enter", shift)
	p.untilText("#c2", "ok")
}
