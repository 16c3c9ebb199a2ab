package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A link signs in once; who is not signed in sees how to, and nothing else.
func TestSignInAndOut(t *testing.T) {
	s := shared(t)
	link := s.link(t)
	p := s.stranger(t)
	p.expects("401")
	p.open("/s/anything")
	p.untilText("h1", "Sign in")
	p.do(chromedp.Navigate(link))
	p.untilText("h1", "Sessions")
	if where := eval[string](p, "location.href"); where != s.base+"/" {
		t.Errorf("the code stays in the address: %s", where)
	}
	if seen := eval[string](p, "document.cookie"); seen != "" {
		t.Errorf("scripts see the cookie: %s", seen)
	}
	again := s.stranger(t)
	again.expects("401")
	again.do(chromedp.Navigate(link))
	again.untilText(".problem", "used already")

	other := p.another(t)
	other.open("/")
	other.until("document.querySelector('#sessions')")
	other.expects("401")
	p.click(".who form button")
	p.untilText("h1", "Sign in")
	other.untilText("h1", "Sign in") // its stream has ended, and with it the page
}

// A model's session appears in the list, runs, and can be closed there.
func TestSessionsAreLive(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	p.untilText("#none", "No sessions yet")
	c := s.mcp(t)
	s.python(t, c, "survey", "x = 1")
	p.untilText("tr[data-id=survey] .state", "idle")
	p.untilText("tr[data-id=survey] .last", "x = 1")
	if _, err := c.Call(t.Context(), "execute_python", map[string]any{
		"code": "import time; time.sleep(600)", "session_id": "survey", "wait_seconds": 0,
	}, nil); err != nil {
		t.Fatal(err)
	}
	p.untilText("tr[data-id=survey] .state", "busy")
	p.until("document.querySelector('tr[data-id=survey] time[data-show=elapsed]')?.textContent === '0:01'")
	p.click("tr[data-id=survey] [data-act=interrupt]")
	p.untilText("tr[data-id=survey] .state", "idle")
	p.click("tr[data-id=survey] [data-act=close]")
	p.untilText("dialog h2", "Close survey?")
	p.click("dialog button.danger")
	p.untilText("tr[data-id=survey] .state", "closed")
}
