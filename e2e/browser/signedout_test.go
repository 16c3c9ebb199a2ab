package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// When a sign-in is over by its time, a page says so and keeps what is written there; who signs in again, in any tab, goes on in it.
func TestSignInThatIsOver(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "over", "x = 6")
	p := s.signIn(t)
	p.expects("401")
	p.desk("over")
	p.untilText("#state", "idle")
	p.write("x * 7")
	eval[string](p, "document.querySelector('meta[name=csrf]').dataset.left = '0'")
	other := p.another(t)
	other.open("/")
	other.expects("401")
	other.click(".who form button")
	other.untilText("h1", "Sign in")
	p.untilText("dialog[open]", "Your sign-in has ended")
	if where := eval[string](p, "document.querySelector('dialog[open] a').pathname"); where != "/signin" {
		t.Errorf("to sign in it leads to %s", where)
	}
	other.do(chromedp.Navigate(s.link(t)))
	other.untilText("h1", "Sessions")
	p.until("!document.querySelector('dialog[open]') && document.querySelector('#link-state').textContent === ''")
	if code := p.code(); code != "x * 7" {
		t.Errorf("of what was written there is %q", code)
	}
	p.do(chromedp.Focus("#code", chromedp.ByQuery))
	p.key("Enter", shift)
	p.until("document.querySelector('#c2 .outputs')?.textContent.includes('42')") // it is not the tab in front
}
