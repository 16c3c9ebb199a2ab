package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// focused is true when what a selector finds first has the focus.
func focused(selector string) string {
	return fmt.Sprintf("document.activeElement === document.querySelector(%s)", quoted(selector))
}

// tabTo presses Tab, with modifiers, until what a selector finds first has the focus.
func (p *tab) tabTo(selector string) {
	p.t.Helper()
	for range 60 {
		if eval[bool](p, focused(selector)) {
			return
		}
		if eval[bool](p, focused("#code")) {
			p.key("Escape") // Tab completes there
		}
		p.key("Tab")
	}
	p.t.Fatalf("Tab does not come to %s, but to %s", selector, eval[string](p, "document.activeElement.outerHTML.slice(0, 200)"))
}

// Without a mouse a session is taken over, and its files looked at and deleted; what had the focus, or what stands in its place, has it
// when a cell has ended, a dialog is closed, or a row has gone.
func TestKeyboardAlone(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "keys", "for name in 'abc': open(name + '.txt', 'w').write(name)\nanswer = 42")
	p.open("/s/keys")
	p.untilText("#panel-variables", "answer")

	p.key("e")
	p.until(focused("#code"))
	p.write("while True: pass")
	p.key("Enter", shift)
	p.untilText("#c2 .cell-status", "running")
	p.until("document.querySelector('#running').checkVisibility()")
	p.key("Escape")
	p.key("r") // to the cell that runs
	p.until(focused("#c2"))
	p.key("i")
	p.key("i")
	p.untilText("#c2", "KeyboardInterrupt")
	p.untilText("#c2 .cell-status", "interrupted")
	p.until(focused("#c2"))

	p.key("e")
	p.write("while True: pass")
	p.key("Enter", shift)
	p.untilText("#c3 .cell-status", "running")
	p.open("/s/keys")
	p.until("document.querySelector('#interrupt').ariaDisabled === 'false'")
	p.tabTo("#interrupt")
	p.key("Enter")
	p.untilText("#c3 .cell-status", "interrupted")
	p.untilText("#state", "idle")
	p.until(focused("#interrupt"))

	p.tabTo("#restart")
	p.key("Enter")
	p.untilText("dialog[open] h2", "Restart keys?")
	p.key("Escape")
	p.until("!document.querySelector('dialog[open]') && " + focused("#restart"))
	p.key("Enter")
	p.untilText("dialog[open] h2", "Restart keys?")
	p.key("Enter")
	p.until("document.querySelector('#restore')?.hidden === false && " + focused("#restart"))
	p.key("e")
	p.until(focused("#code"))
	p.key("Escape")
	p.tabTo("#restore")
	p.key("Enter")
	p.untilText("dialog[open] h2", "Run the earlier cells again?")
	p.key("Enter")
	p.untilText("#c4 .cell-status", "ok")
	p.until("document.querySelector('#restore').hidden && " + focused("#code"))

	p.key("Escape")
	p.tabTo("#tab-variables")
	p.key("ArrowRight")
	p.until(focused("#tab-files"))
	p.untilText("#folder", "b.txt")
	p.tabTo("[data-delete='b.txt']")
	p.key("Enter")
	p.untilText("dialog[open] h2", "Delete b.txt?")
	p.key("Enter")
	p.until("!document.querySelector('#folder').innerText.includes('b.txt') && " + focused("[data-delete='c.txt']"))
	p.tabTo("[data-preview='c.txt']")
	p.key("Enter")
	p.until("document.querySelector('#preview').open")
	s.python(t, c, "keys", "1") // which has the files listed anew
	p.untilText("#c5 .outputs", "1")
	p.key("Escape")
	p.until("!document.querySelector('#preview').open && document.activeElement.closest('#panel-files') !== null")

	p.open("/")
	p.tabTo("tr[data-id=keys] [data-act=close]")
	p.key("Enter")
	p.untilText("dialog[open] h2", "Close keys?")
	p.key("Enter")
	p.untilText("tr[data-id=keys] .state", "closed")
	p.until(focused("tr[data-id=keys] a"))
}

// The panel, which comes behind all cells, is reached at once from wherever one is: by a key, which the list of them names, and by what
// skips to it; the page stays where it is.
func TestKeysToThePanel(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for range 3 {
		s.python(t, c, "far", tall)
	}
	p := s.signIn(t)
	for _, size := range [][2]int64{{1280, 900}, {390, 844}} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		p.open("/s/far")
		p.until("document.querySelector('#follow').ariaPressed === 'true' && document.documentElement.scrollHeight - innerHeight - scrollY < 2 && scrollY > 500")
		p.press("?")
		p.untilText("dialog[open] .keys", "The tabs of the side panel")
		p.key("Escape")
		for name, reach := range map[string]func(){"the key": func() { p.press("t") }, "the link": func() {
			p.do(chromedp.Focus(".skip", chromedp.ByQuery)) // the first that Tab comes to
			p.tabTo("#skip-panel")
			p.key("Enter")
		}} {
			before := eval[int](p, "Math.round(scrollY)")
			reach()
			p.until(focused("#panel [role=tab][aria-selected=true]") + " && " + inSight("#panel-body"))
			if after := eval[int](p, "Math.round(scrollY)"); after != before {
				t.Errorf("%v, %s: the page goes from %d to %d", size, name, before, after)
			}
			p.key("ArrowRight")
			p.until(focused("#tab-files") + " && " + inSight("#panel-files"))
			p.key("ArrowLeft")
			p.key("p")
			p.until("document.querySelector('#panel-fold').getAttribute('aria-expanded') === 'false'")
		}
	}
}

// On a phone the panel is a line of the head; what is open in it lies over the cells, which stay where they are, until it is told to go.
func TestPanelOnAPhone(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "pocket", tall)
	p := s.signIn(t)
	p.do(chromedp.EmulateViewport(390, 844))
	p.open("/s/pocket")
	p.until("document.querySelector('#follow').ariaPressed === 'true' && document.documentElement.scrollHeight - innerHeight - scrollY < 2")
	p.until("document.querySelector('#panel-fold')?.getAttribute('aria-expanded') === 'false'")
	where := "Math.round(document.querySelector('#c1 .outputs').getBoundingClientRect().bottom)"
	before := eval[int](p, where)
	p.click("#tab-variables")
	p.untilText("#panel-variables", "number_79")
	p.until(inSight("#tab-variables"))
	wrong := eval[string](p, `(() => {
		const bar = document.querySelector('.session-bar').getBoundingClientRect(), panel = document.querySelector('#panel').getBoundingClientRect();
		const body = document.querySelector('#panel-body').getBoundingClientRect(), editor = document.querySelector('#editor').getBoundingClientRect();
		if (Math.abs(panel.top - bar.bottom) > 1 || panel.left > 0 || panel.right < innerWidth) return 'the head and the panel are apart';
		if (body.bottom > editor.top) return 'the editor is covered';
		return document.documentElement.scrollWidth > innerWidth ? 'the page is too wide' : '';
	})()`)
	if after := eval[int](p, where); wrong != "" || after != before {
		t.Errorf("with the panel open: %s; what was at %d is at %d", wrong, before, after)
	}
	p.key("Escape")
	p.until("document.querySelector('#panel-fold').getAttribute('aria-expanded') === 'false'")
	s.python(t, s.mcp(t), "short", "1") // with the editor near the head
	p.open("/s/short")
	p.until("document.querySelector('#panel-fold')?.getAttribute('aria-expanded') === 'false'")
	p.click("#tab-details")
	p.untilText("#details", "Processes")
	p.until(inSight("#details"))
	p.do(chromedp.EmulateViewport(1280, 900)) // where there is room it is open again
	p.until("document.querySelector('#panel-fold').getAttribute('aria-expanded') === 'true'")
}

// Who does not see the cells hears how his own end, and of no others.
func TestEndsAreHeard(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "heard", "x = 1")
	p := s.signIn(t)
	p.desk("heard")
	hears := func(want string) {
		t.Helper()
		p.until("document.querySelector('#ended-said[role=status]').textContent === " + quoted(want))
	}
	for _, cell := range []struct{ code, want string }{{"x", "Cell 2: ok"}, {"1/0", "Cell 3: error"}} {
		p.write(cell.code)
		p.key("Enter", shift)
		hears(cell.want)
	}
	s.python(t, c, "heard", "x")
	p.untilText("#c4 .cell-status", "ok")
	hears("Cell 3: error")
	p.write("import time; time.sleep(0.5)")
	p.key("Enter", shift)
	hears("Cell 5: ok")
	p.write("import os; os._exit(3)")
	p.key("Enter", shift)
	p.untilText("#c6 .failure", "exited")
	hears("Cell 6: kernel died. " + strings.TrimSpace(p.text("#c6 .failure")))
}
