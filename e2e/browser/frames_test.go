package browser

import (
	"fmt"
	"testing"
)

// A cell's JavaScript has the element that notebooks give it, says what it throws, and leaves room to scroll sideways.
func TestFrames(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	cells := []struct{ code, shows string }{
		{`Javascript('element.innerHTML = "<b>inner</b>"')`, `document.querySelector('b')?.innerText === 'inner'`},
		{`Javascript('element.append("plain"); element.append("<b>bold</b>")')`, `document.body.innerText.includes('plainbold') && document.querySelector('b')`},
		{`Javascript('element.text("<jQuery>")')`, `document.body.innerText === '<jQuery>'`},
		{`Javascript('const element = document.createElement("i"); element.textContent = "own"; document.body.append(element)')`, `document.querySelector('i')?.innerText === 'own'`},
		{`Javascript('var here = 1; setTimeout(() => { element.textContent = "later" + typeof globalThis.here })')`, `document.body.innerText === 'laterundefined'`},
		{`Javascript('nowhere.at.all()')`, `document.querySelector('.cellblock-error')?.innerText === 'JavaScript: ReferenceError: nowhere is not defined'`},
		{`Javascript('this is no script')`, `document.querySelector('.cellblock-error')?.innerText.startsWith('JavaScript: SyntaxError: ')`},
		{`Javascript('Promise.reject(new TypeError("<i>told</i>"))')`, `document.querySelector('.cellblock-error')?.innerText === 'JavaScript: TypeError: <i>told</i>'`},
		// A table of pandas that has styles: it is on a light card, its headers above what they are of.
		{`HTML('<style>#T_1 td {color: #000}</style><table id="T_1"><thead><tr><th>city</th></tr></thead><tbody><tr><td>Oslo, a long name</td></tr></tbody></table>')`,
			`[...document.querySelectorAll('th, td')].every((one) => getComputedStyle(one).textAlign === 'right') && getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)' && parseInt(getComputedStyle(document.body).paddingLeft) >= 8`},
		// The browser of tests hides the bar to scroll sideways, and so this says that there is one.
		{`HTML('<script>Object.defineProperty(window, "innerHeight", {get: () => document.documentElement.clientHeight + 20})</script><div style="width: 3000px">wide</div>')`,
			`document.documentElement.scrollWidth > 2900`},
	}
	for _, cell := range cells {
		s.python(t, c, "frames", "from IPython.display import *\n"+cell.code)
	}
	p := s.signIn(t)
	p.expects("nowhere", "SyntaxError", "told") // which the browser says too
	p.open("/s/frames")
	for i, cell := range cells {
		p.frame(i + 1).until(cell.shows)
	}
	high := eval[int](p.frame(len(cells)), "Math.ceil(document.documentElement.getBoundingClientRect().height)")
	p.untilCell(len(cells), fmt.Sprintf("cell.querySelector('iframe').style.height === '%dpx'", high+20))
}
