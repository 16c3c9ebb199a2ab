package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// rows are how many rows the session's head takes. Nothing in it reaches out of the window.
const rows = `(() => {
	const parts = [...document.querySelectorAll('.session-bar :is(a, h1, span, time, input, output, button)')].map((part) => part.getBoundingClientRect()).filter(({width}) => width > 0);
	if (parts.some(({right}) => right > document.documentElement.clientWidth)) return 'it is cut';
	const middles = parts.map(({top, height}) => top + height / 2).sort((a, b) => a - b);
	return String(middles.filter((middle, i) => i === 0 || middle - middles[i - 1] > 12).length);
})()`

// The head of a session is low, also where it is narrow, a cell runs, news have come and something was found; what stops the cell
// stays there.
func TestHeadIsLow(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	const name = "a-name-that-is-longer-than-a-telephone-is-wide"
	for range 4 {
		s.python(t, c, name, tall)
	}
	s.python(t, c, "low", tall)
	p := s.signIn(t)
	lasts := func(want string) {
		t.Helper()
		p.until(rows + " === " + quoted(want))
	}
	find := func(text, said string) {
		t.Helper()
		p.do(chromedp.Focus("#find-text", chromedp.ByQuery))
		eval[bool](p, "(document.querySelector('#find-text').select(), true)")
		p.write(text)
		p.key("Enter")
		p.untilText("#find-count", said)
	}

	p.do(chromedp.EmulateViewport(800, 844))
	p.open("/s/low")
	lasts("1")
	find("line", "1 of 1 cell")
	lasts("1")

	p.do(chromedp.EmulateViewport(390, 844))
	p.open("/s/" + name)
	lasts("2")
	p.until("document.querySelector('#follow').ariaPressed === 'true' && scrollY > 1000")
	p.click("#follow")
	s.start(t, c, name, "import os, time\nprint('news')\nwhile not os.path.exists('stop'): time.sleep(0.02)")
	p.untilText("#follow", "1 new")
	p.until("document.querySelector('#elapsed').textContent !== ''")
	lasts("2")
	find("line", "of 4 cells")
	lasts("2")
	find("nowhere", "Not found")
	lasts("2")
	for _, what := range []string{"#state", "#interrupt", "#find-text"} {
		p.until(inSight(what))
	}
	p.key("Escape")
	for _, what := range []string{"#follow", "#interrupt", "#restart"} {
		p.until(inSight(what))
	}
	lasts("2")
	p.click("#interrupt")
	p.untilText("#state", "idle")
	lasts("2")
}
