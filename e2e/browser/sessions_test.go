package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A link signs in once; who is not signed in sees how to, and nothing else.
func TestSignInAndOut(t *testing.T) {
	s := shared(t)
	link := s.link(t)
	p := s.stranger(t)
	p.expects("401")
	p.open("/")
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
	p.until("!['0:00', '', undefined].includes(document.querySelector('tr[data-id=survey] time[data-show=elapsed]')?.textContent)")
	press := func(action string) { // a click may come when the row has just been replaced
		button := "document.querySelector('tr[data-id=survey] [data-act=" + action + "]')"
		p.until(button + " !== null")
		eval[bool](p, "("+button+".click(), true)")
	}
	press("interrupt")
	p.untilText("tr[data-id=survey] .state", "idle")
	press("close")
	p.untilText("dialog h2", "Close survey?")
	p.click("dialog button.danger")
	p.untilText("tr[data-id=survey] .state", "closed")
	press("delete")
	p.untilText("dialog h2", "Delete survey?")
	p.click("dialog button.danger")
	p.until("!document.querySelector('tr[data-id=survey]')")
	if r, err := c.Call(t.Context(), "list_files", map[string]any{"session_id": "survey"}, nil); err != nil || !r.IsError || !strings.Contains(r.Text, "there is no session") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A browser opens six connections to a server; ten tabs are live all the same, and one that is closed takes nobody's stream along.
func TestTenTabs(t *testing.T) {
	s := shared(t)
	tabs := []*tab{s.signIn(t)}
	for range 9 {
		tabs = append(tabs, tabs[0].another(t))
	}
	for _, p := range tabs[1:] {
		p.open("/")
	}
	c := s.mcp(t)
	s.python(t, c, "first", "x = 1")
	for _, p := range tabs {
		p.untilText("tr[data-id=first] .state", "idle")
	}
	tabs[9].do(chromedp.Navigate("about:blank"))
	s.python(t, c, "second", "x = 1")
	for _, p := range tabs[:9] {
		p.untilText("tr[data-id=second] .state", "idle")
	}
}

// The list is moved through and searched, and a session begun, without a mouse.
func TestSessionsByKeys(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "apples", "x = 1")
	s.python(t, c, "pears", "x = 1")
	p := s.signIn(t)
	p.untilText("tr[data-id=apples] .state", "idle")
	for _, width := range []int64{1024, 1280} {
		p.do(chromedp.EmulateViewport(width, 900))
		if over := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("at %d pixels the list is %d too wide", width, over)
		}
	}
	p.press("/")
	p.until("document.activeElement.id === 'search'")
	empty := func(selector string) { // the letter of a key that was taken is typed all the same, by who drives a browser so
		eval[bool](p, "(document.querySelector('"+selector+"').value = '') === ''")
	}
	empty("#search")
	p.do(chromedp.KeyEvent("apples"))
	p.until("document.querySelector('tr[data-id=pears]').hidden && !document.querySelector('tr[data-id=apples]').hidden")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("!document.querySelector('tr[data-id=pears]').hidden")
	p.press("/")
	p.until("document.activeElement.id === 'search'")
	empty("#search")
	p.do(chromedp.KeyEvent("pears"))
	p.until("document.querySelector('tr[data-id=apples]').hidden")
	p.do(chromedp.KeyEvent(kb.Enter)) // the one that is left
	p.until("location.pathname === '/s/pears'")
	for _, width := range []int64{390, 1280} {
		p.do(chromedp.EmulateViewport(width, 900))
		p.open("/")
		p.until("document.getElementById('search')?.placeholder === '" + map[int64]string{390: "Search", 1280: "Search  /"}[width] + "'")
	}
	p.untilText("tr[data-id=apples] .state", "idle")
	p.press("j")
	p.press("j")
	if at := eval[string](p, "document.activeElement.textContent"); at != "apples" {
		t.Errorf("j j leads to %q", at)
	}
	p.press("?")
	p.untilText("dialog", "Next session")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("!document.querySelector('dialog')")
	p.do(chromedp.Evaluate("document.activeElement.blur()", nil)) // nothing that the focus could go back to
	p.press("?")
	p.untilText("dialog", "Next session")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("document.activeElement.id === 'main'")
	if ring := eval[string](p, "getComputedStyle(document.activeElement).outlineStyle"); ring != "none" {
		t.Errorf("around the whole page is a ring: %s", ring)
	}
	p.press("n")
	p.untilText("dialog h2", "New session")
	empty("dialog [name=session_id]")
	p.expects("400")
	p.do(chromedp.SendKeys("dialog [name=session_id]", ".."+kb.Enter, chromedp.ByQuery))
	p.untilText("dialog [role=alert]", "is not allowed")
	empty("dialog [name=session_id]")
	p.do(chromedp.SendKeys("dialog [name=session_id]", "plums"+kb.Enter, chromedp.ByQuery))
	p.until("location.pathname === '/s/plums'")
	p.untilText("h1", "plums")
	p.until("document.activeElement.id === 'code'") // to go on at once
}

// Who closes the form of a new session stays where he is, and is told what went wrong; a form that is sent again says nothing old.
func TestFormThatIsClosed(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	p.until("document.getElementById('sessions')")
	p.expects("400")
	eval[bool](p, `(() => {
		const ask = fetch;
		globalThis.fetch = async (path, options) => {
			if (path === '/sessions') await globalThis.gate;
			return ask(path, options);
		};
		globalThis.shut = () => { globalThis.gate = new Promise((go) => { globalThis.letGo = go; }); };
		navigation.addEventListener('navigate', () => { globalThis.left = true; });
		return true;
	})()`)
	send := func(id string) {
		eval[bool](p, "(document.querySelector('dialog [name=session_id]').value = "+quoted(id)+") !== null")
		p.click("dialog button.primary")
	}
	giveUp := func() {
		p.until("document.querySelector('dialog button.primary').disabled")
		p.do(chromedp.KeyEvent(kb.Escape))
		p.until("!document.querySelector('dialog')")
		eval[bool](p, "letGo() ?? true")
	}
	p.click("#new")
	send("..")
	p.untilText("dialog [role=alert]", "is not allowed")
	eval[bool](p, "shut() ?? true")
	send("figs")
	if said := p.text("dialog [role=alert]"); said != "" {
		t.Errorf("while it is sent again the form says %q", said)
	}
	giveUp()
	p.untilText("tr[data-id=figs] .state", "idle")
	p.click("#new")
	eval[bool](p, "shut() ?? true")
	send("..")
	giveUp()
	p.untilText(".toast.problem", "is not allowed")
	if eval[bool](p, "globalThis.left ?? false") {
		t.Error("the page went to the session that was given up")
	}
}

// The images of the language are to be chosen from, and another can be named; where there are none, nothing is asked.
func TestImagesOfANewSession(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	p.until("document.getElementById('sessions')")
	p.click("#new")
	p.until("document.querySelector('dialog [data-images]') && performance.getEntriesByName(location.origin + '/images').length > 0")
	if eval[bool](p, "document.querySelector('dialog [data-images]').checkVisibility()") {
		t.Error("without images, one is asked for")
	}
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("!document.querySelector('dialog')")
	eval[bool](p, `(() => {
		const ask = fetch;
		globalThis.fetch = async (path, options) => {
			if (path === '/images') return Response.json({python: [{name: 'ml', about: 'with pip:polars'}]});
			if (path === '/sessions') globalThis.sent = JSON.parse(options.body).image;
			return ask(path, options);
		};
		return true;
	})()`)
	p.click("#new")
	p.until("document.querySelector('dialog [data-images]')?.checkVisibility()")
	choose := func(label string) {
		t.Helper()
		p.until(fmt.Sprintf(`(() => {
			const list = document.querySelector('dialog [data-images]'), option = [...list.options].find(({text}) => text.startsWith(%s));
			if (option) { list.value = option.value; list.dispatchEvent(new Event('change', {bubbles: true})); }
			return option;
		})()`, quoted(label)))
	}
	p.expects("400")
	for _, tt := range []struct{ choice, typed, sent string }{{"ml (with pip:polars)", "", "ml"}, {"Another…", "mine:1", "mine:1"}, {"the language's own", "", ""}} {
		choose(tt.choice)
		if tt.typed != "" {
			p.until("document.activeElement.name === 'image'")
			p.write(tt.typed)
		}
		eval[bool](p, "delete globalThis.sent")
		p.click("dialog button.primary")
		p.until("globalThis.sent === " + quoted(tt.sent))
		if tt.sent != "" { // there is no such image here, and the form stays
			p.until("document.querySelector('dialog [role=alert]').innerText !== '' && !document.querySelector('dialog button.primary').disabled")
		}
	}
	p.until("location.pathname.startsWith('/s/')")
}
