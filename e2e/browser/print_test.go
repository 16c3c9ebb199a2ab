package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// On paper there are the cells and nothing that is clicked on, nothing lies over them, and what scrolls is whole.
func TestPrint(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "printed", `from IPython.display import HTML
HTML('<table><tr>' + '<td>a cell of many</td>' * 60 + '</tr></table>') # `+"and a remark that goes on and on and on and on and on and on and on and on and on and on and on and on and on and on")
	p := s.signIn(t)
	p.open("/s/printed")
	const scrolling = "[...document.querySelectorAll('.code, .html')].filter((box) => box.scrollWidth > box.clientWidth + 1).length"
	p.untilCell(1, "cell.querySelector('.html table')")
	p.until(scrolling + " === 2")
	p.do(emulation.SetEmulatedMedia().WithMedia("print"))
	p.until("getComputedStyle(document.querySelector('.session-bar')).position === 'static' && document.querySelector('h1').checkVisibility()")
	p.until("[...document.querySelectorAll('button, input, textarea, nav, .panel')].every((part) => part.matches('.unfold') || !part.checkVisibility())")
	p.until("document.querySelector('#c1 .code').scrollWidth <= document.querySelector('#c1 .code').clientWidth + 1")
	p.until("getComputedStyle(document.querySelector('#c1 .html')).overflowX === 'visible' && getComputedStyle(document.querySelector('#c1 .html td')).whiteSpace === 'normal'")
}

// Paper says where it lacks something: lines that are folded, and cells that the page did not hold.
func TestPrintSaysWhatItLacks(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "lacking", "for i in range(100): print('line', i)")
	p := s.signIn(t)
	p.open("/s/lacking")
	p.untilCell(1, "cell.querySelector('.unfold')")
	eval[bool](p, `((far) => {
		far.className = 'block';
		Object.assign(far.dataset, {from: 51, to: 100});
		far.style.height = '9000px';
		document.querySelector('#cells').append(far);
		return true;
	})(document.createElement('div'))`)
	const says = "getComputedStyle(document.querySelector(%s), '::before').content"
	p.until(fmt.Sprintf(says, quoted(".block:empty")) + ".includes('are on their way')")
	p.do(emulation.SetEmulatedMedia().WithMedia("print"))
	p.until("document.querySelector('.unfold').checkVisibility() && " + fmt.Sprintf(says, quoted(".unfold")) + ".includes('left out')")
	p.until(fmt.Sprintf(says, quoted(".block:empty")) + ".includes('left out') && document.querySelector('.block:empty').offsetHeight < 100")
}
