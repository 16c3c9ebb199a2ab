package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// When a sign-in is over by its time, a page says so and keeps what is written there; who signs in again, in any tab, goes on in it,
// as often as that happens. When it is somebody else, the page becomes theirs.
func TestSignInThatIsOver(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "over", "x = 6")
	p := s.signIn(t)
	p.expects("401")
	p.desk("over")
	p.untilText("#state", "idle")
	other := p.another(t)
	other.expects("401")
	for _, code := range []string{"x * 7", "x * 8"} {
		p.do(page.BringToFront())
		p.write(code)
		p.signInEnds(other)
		if code == "x * 8" { // who closes what says so comes back all the same
			p.do(chromedp.Evaluate("document.querySelector('dialog[open]').addEventListener('close', () => { window.wasClosed = true })", nil)) // for how long, nobody knows
			p.press(kb.Escape)
			p.until("window.wasClosed")
		}
		other.do(page.BringToFront(), chromedp.Navigate(s.link(t)))
		other.untilText("h1", "Sessions")
		p.do(page.BringToFront())
		p.until("!document.querySelector('dialog[open]') && document.querySelector('#link-state').textContent === '' && Number(document.querySelector('meta[name=csrf]').dataset.left) > 0")
		if left := p.code(); left != code {
			t.Errorf("of what was written, %q, there is %q", code, left)
		}
		p.do(chromedp.Focus("#code", chromedp.ByQuery))
		p.key("Enter", shift)
		p.until("document.querySelector('#code').value === ''")
	}
	p.untilText("#c2 .outputs", "42")
	p.untilText("#c3 .outputs", "48")

	second := subject(t) + ".second"
	s.python(t, s.Connect(t, s.Token(t, "--subject", second), false), "over", "print('of the second')") // under the same name
	p.write("what the first has written")
	p.signInEnds(other)
	other.do(page.BringToFront(), chromedp.Navigate(s.linkOf(t, second)))
	other.untilText("h1", "Sessions")
	p.do(page.BringToFront())
	p.untilText("#c1 .outputs", "of the second")
	p.until("document.querySelector('#state')?.innerText.includes('idle') && !document.querySelector('dialog[open]')")
	html := eval[string](p, "document.documentElement.outerHTML")
	if strings.Contains(html, "x * 7") || p.code() != "" {
		t.Errorf("the second sees of the first %q and\n%s", p.code(), html)
	}
}

// signInEnds has the sign-in of a page end as if by its time, which another tab of the browser brings about.
func (p *tab) signInEnds(other *tab) {
	p.t.Helper()
	eval[string](p, "document.querySelector('meta[name=csrf]').dataset.left = '0'")
	other.do(page.BringToFront())
	other.open("/")
	other.click(".who form button")
	other.untilText("h1", "Sign in")
	p.do(page.BringToFront()) // browsers let a tab in the back look at its clock once a minute
	p.untilText("dialog[open]", "Your sign-in has ended")
	if where := eval[string](p, "document.querySelector('dialog[open] a').pathname"); where != "/signin" {
		p.t.Errorf("to sign in it leads to %s", where)
	}
}

// Who asks for a page and has to sign in first comes to that page.
func TestSignInLeadsToThePage(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "wanted", "print('here it is')")
	p := s.stranger(t)
	p.expects("401")
	p.open("/s/wanted")
	p.untilText("h1", "Sign in")
	p.do(chromedp.Navigate(s.link(t)))
	p.untilText("#c1 .outputs", "here it is")
	if where := eval[string](p, "location.pathname"); where != "/s/wanted" {
		t.Errorf("it is at %s", where)
	}
}

// A tab that was led to the page to sign in, as another has signed out, comes back by itself when somebody signs in in another: to the
// page that it had, if it is the same person.
func TestTabsComeBackAfterSigningOut(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "back", "print('here it is')")
	p := s.signIn(t)
	p.expects("401")
	other := p.another(t)
	other.expects("401")
	for _, next := range []struct{ who, at string }{{subject(t), "/s/back"}, {subject(t) + ".second", "/"}} {
		other.open("/")
		p.do(page.BringToFront())
		p.open("/s/back")
		p.untilText("#c1 .outputs", "here it is")
		other.do(page.BringToFront())
		other.click(".who form button")
		other.untilText("h1", "Sign in")
		p.do(page.BringToFront())
		p.untilText("h1", "Sign in")
		other.do(page.BringToFront(), chromedp.Navigate(s.linkOf(t, next.who)))
		other.untilText("h1", "Sessions")
		p.do(page.BringToFront())
		p.until("document.querySelector('.top nav') && location.pathname === " + quoted(next.at))
	}
}
