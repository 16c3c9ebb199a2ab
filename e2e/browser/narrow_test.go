package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Code that is longer than a phone is wide scrolls: its buttons are beside it, and the lines of a traceback stay lines.
func TestLongLinesOnAPhone(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "narrow", "def fails(x):\n    return x / 0  # and a remark that goes on and on and on and on and on and on and on\nfails(1)")
	p := s.signIn(t)
	p.do(chromedp.EmulateViewport(390, 844), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "hover", Value: "none"}}))
	p.open("/s/narrow")
	p.untilCell(1, "cell.querySelectorAll('.frame-of-error').length === 2")
	const scrolls = "code.scrollWidth > code.clientWidth"
	p.until("((code) => " + scrolls + ")(document.querySelector('#c1 .code'))")
	p.until("document.querySelector('#c1 .code').getBoundingClientRect().right <= document.querySelector('#c1 .copied > .copy').getBoundingClientRect().left")
	p.until("((code) => " + scrolls + ")(document.querySelector('#c1 .frame-of-error pre'))")
	p.until(`[...document.querySelectorAll('#c1 .frame-of-error pre')].every((code) => code.tabIndex === 0 &&
		code.getBoundingClientRect().height < (code.textContent.split('\n').length + 1) * parseFloat(getComputedStyle(code).lineHeight) + 20)`)
	p.until("document.documentElement.scrollWidth === innerWidth")
}

// The commands of the page to sign in are taken as a whole by one tap.
func TestCommandsOfTheSignInPage(t *testing.T) {
	p := shared(t).stranger(t)
	p.do(chromedp.EmulateViewport(390, 844))
	p.open("/signin")
	p.click(".card > pre")
	p.until("getSelection().toString().trim() === document.querySelector('.card > pre').textContent")
}
