package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A text that stands among the lines of a long output that are folded is shown there: the output is unfolded, as others of the cell are
// not.
func TestFindInFoldedLines(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "folded", "import sys\nfor i in range(300): print('epoch', i)\nsys.stdout.flush()\nfor i in range(300): print('loss', i, file=sys.stderr)")
	p := s.signIn(t)
	p.open("/s/folded")
	p.until("document.querySelectorAll('#c1 .unfold').length === 2")
	p.do(chromedp.Focus("#find-text", chromedp.ByQuery))
	p.write("loss 150")
	p.key("Enter")
	p.untilText("#find-count", "1 of 1 cell")
	p.until(`(() => {
		const [range] = CSS.highlights.get('found') ?? [], at = range?.getBoundingClientRect(), box = range?.startContainer.parentElement.closest('.unfolded')?.getBoundingClientRect();
		return Boolean(box) && String(range).toLowerCase() === 'loss 150' && at.top >= Math.max(0, box.top) && at.bottom <= Math.min(box.bottom, document.querySelector('#editor').getBoundingClientRect().top);
	})()`)
	p.until("document.querySelectorAll('#c1 .unfold').length === 1 && document.querySelectorAll('#c1 .unfolded').length === 1 && document.querySelector('#find').classList.contains('found')")
	p.until(focused("#find-text"))
}

// A text that stands in the code of a cell is looked for nowhere else there, also where its words have colours of their own.
func TestFindInCode(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "in-code", "for epoch in range(300): print('epoch', epoch)")
	p := s.signIn(t)
	p.open("/s/in-code")
	p.until("document.querySelector('#c1 .unfold') && document.querySelectorAll('#c1 .code span').length > 1")
	p.do(chromedp.Focus("#find-text", chromedp.ByQuery))
	p.write("for epoch in range")
	p.key("Enter")
	p.untilText("#find-count", "1 of 1 cell")
	p.write("300")
	p.until("document.querySelector('#find-count').textContent === ''")
	eval[bool](p, "(document.querySelector('#find-text').value = 'for epoch in', true)")
	p.key("Enter")
	p.untilText("#find-count", "1 of 1 cell")
	p.until("CSS.highlights.has('found')")
	if n := eval[int](p, "performance.getEntriesByType('resource').filter(({name}) => name.includes('/items/')).length"); n != 0 {
		t.Errorf("outputs were asked for %d times", n)
	}
}
