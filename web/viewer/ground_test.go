package viewer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/sessions"
	"cellblock/web/viewer/signin"
)

// page asks for a page as a browser does that follows a link from somewhere.
func (b *browser) page(method, path, from string, form url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", from)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.secret != "" {
		r.AddCookie(&http.Cookie{Name: b.viewer.cookie, Value: b.secret})
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

func (p *pages) code(token string) string {
	p.t.Helper()
	code, err := signin.NewCode(p.codes, token)
	if err != nil {
		p.t.Fatal(err)
	}
	return code
}

// Nobody gets anything without a sign-in but the way to one, and nobody changes anything without its token.
func TestStrangersAndForgers(t *testing.T) {
	p := newPages(t)
	stranger, forger := &browser{pages: p}, p.signIn("ann", all...)
	forger.csrf = ""
	for _, r := range p.viewer.table {
		method, path, _ := strings.Cut(strings.NewReplacer("{id}", "s", "{$}", "").Replace(r.pattern), " ")
		if strings.Contains(path, "{") || r.scope == anybody {
			continue
		}
		if w := stranger.send(method, path, nil); w.Code != http.StatusUnauthorized {
			t.Errorf("%s answers strangers with %d", r.pattern, w.Code)
		}
		if method == http.MethodGet {
			if r.action != "" {
				t.Errorf("%s changes something by a GET", r.pattern)
			}
			continue
		}
		if w := forger.send(method, path, nil); w.Code != http.StatusForbidden {
			t.Errorf("%s takes what has no token: %d", r.pattern, w.Code)
		}
		quiet := []string{"/signout", "/s/s/complete", "/s/s/inspect", "/s/s/upload", "/live"} // of an upload its end is told
		if r.action == "" && !slices.Contains(quiet, path) {
			t.Errorf("%s names no action for the audit log", r.pattern)
		}
	}
}

// A link signs in whoever follows it from a terminal, once. What looks ahead does not use it up, and who comes from another site is
// asked.
func TestLink(t *testing.T) {
	p := newPages(t)
	b := &browser{pages: p}
	link := "/signin?code=" + p.code("ann sessions:read")
	if w := b.page("HEAD", link, "none", nil); w.Code != 200 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("HEAD: %d", w.Code)
	}
	if w := b.page("GET", link, "cross-site", nil); w.Code != 200 || w.Header().Get("Set-Cookie") != "" || !strings.Contains(w.Body.String(), "Continue") {
		t.Errorf("from another site: %d", w.Code)
	}
	w := b.page("GET", link, "none", nil)
	cookie := w.Header().Get("Set-Cookie")
	if w.Code != http.StatusSeeOther || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "ann") {
		t.Fatalf("%d, %s", w.Code, cookie)
	}
	if w := b.page("GET", link, "none", nil); w.Code != http.StatusUnauthorized || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("again: %d", w.Code)
	}
	if text := b.page("GET", link, "none", nil).Body.String(); !strings.Contains(text, "<p class=\"problem\" role=\"alert\">This link was used already, or is too old.</p>") || strings.Contains(text, "Hint") {
		t.Errorf("again, it says %s", text)
	}
	if w := p.signIn("eve", "sessions:read").page("GET", link, "none", nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("again, by who is signed in: %d to %s", w.Code, w.Header().Get("Location"))
	}
	form := url.Values{"code": {p.code("ann sessions:read")}}
	if w := b.page("POST", "/signin", "cross-site", form); w.Code != http.StatusForbidden {
		t.Errorf("posted by another site: %d", w.Code)
	}
	if w := b.page("POST", "/signin", "same-origin", form); w.Code != http.StatusSeeOther {
		t.Errorf("confirmed: %d", w.Code)
	}
	ann := p.signIn("ann", "sessions:read") // whose cookie stayed back with the link, and comes with the form
	if w := ann.page("POST", "/signin", "same-origin", url.Values{"code": {p.code("ann sessions:read")}}); w.Code != http.StatusSeeOther {
		t.Errorf("confirmed by who is signed in: %d", w.Code)
	}
	if _, err := p.signIns.Find(ann.secret); err == nil {
		t.Error("the sign-in before holds still")
	}
}

// Who asked for a page before signing in comes to it afterwards, once; what else a cookie names leads nowhere but to the list.
func TestWayBack(t *testing.T) {
	p := newPages(t)
	name := p.viewer.wayBackCookie()
	w := (&browser{pages: p}).page("GET", "/s/hers", "none", nil)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusUnauthorized || len(cookies) != 1 || cookies[0].Name != name || cookies[0].Value != "/s/hers" || !cookies[0].HttpOnly {
		t.Fatalf("%d, %v", w.Code, cookies)
	}
	if w := (&browser{pages: p}).page("GET", "/", "none", nil); len(w.Result().Cookies()) > 0 {
		t.Errorf("the list is remembered: %v", w.Result().Cookies())
	}
	for asked, want := range map[string]string{
		"/s/hers": "/s/hers", "/server": "/server", "/signin": "/", "//evil": "/", "https://evil": "/", `/\evil`: "/", `/s/\evil`: "/", "/s//evil": "/", "/s/..": "/",
		"/s/../evil": "/", "javascript:alert(1)": "/", "/s/a\tb": "/", "/s/a?to=//evil": "/", "": "/", "evil": "/",
	} {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8787/signin?code="+p.code("ann sessions:read"), nil)
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Cookie", name+`="`+strings.ReplaceAll(asked, `"`, "")+`"`)
		w := httptest.NewRecorder()
		p.handler.ServeHTTP(w, r)
		if where := w.Header().Get("Location"); w.Code != http.StatusSeeOther || where != want {
			t.Errorf("%q leads to %q (%d)", asked, where, w.Code)
		}
		if want != "/" && !slices.ContainsFunc(w.Result().Cookies(), func(c *http.Cookie) bool { return c.Name == name && c.MaxAge < 0 }) {
			t.Errorf("%q is not forgotten: %v", asked, w.Result().Cookies())
		}
		if ownPage(asked) != (want != "/") {
			t.Errorf("%q is a page of ours: %v", asked, ownPage(asked))
		}
	}
}

// A tab that finds that its person has signed out leads whoever signs in next nowhere; one whose sign-in was ended leads back to it.
func TestNoWayBackAfterSigningOut(t *testing.T) {
	p := newPages(t)
	way := func(w *httptest.ResponseRecorder) string {
		for _, c := range w.Result().Cookies() {
			if c.Name == p.viewer.wayBackCookie() {
				return fmt.Sprintf("%s for %d s", c.Value, c.MaxAge)
			}
		}
		return ""
	}
	ann := p.signIn("ann", all...)
	if w := ann.page("GET", "/signin?to=/s/hers", "same-origin", nil); w.Header().Get("Location") != "/s/hers" {
		t.Errorf("who is signed in comes to %q", w.Header().Get("Location"))
	}
	if w := ann.page("GET", "/signin?to=//evil", "same-origin", nil); w.Header().Get("Location") != "/" {
		t.Errorf("who is signed in comes to %q", w.Header().Get("Location"))
	}
	w := ann.page("POST", "/signout", "same-origin", url.Values{"csrf": {ann.csrf}})
	if w.Code != http.StatusSeeOther || way(w) != " for -1 s" {
		t.Errorf("signing out: %d, and the way back is %q", w.Code, way(w))
	}
	if w := (&browser{pages: p}).page("GET", "/signin?to=/s/hers", "same-origin", nil); w.Code != http.StatusOK || way(w) != "" || strings.Contains(w.Body.String(), "hers") {
		t.Errorf("a tab of who has signed out: %d, the way back is %q\n%s", w.Code, way(w), w.Body)
	}
	bob := p.signIn("bob", all...)
	if err := os.RemoveAll(p.codes); err != nil { // as an operator does
		t.Fatal(err)
	}
	if w := bob.page("GET", "/signin?to=/s/his", "same-origin", nil); way(w) != "/s/his for 600 s" {
		t.Errorf("a tab whose sign-in was ended: the way back is %q", way(w))
	}
}

// Pages come under a strict policy; one that another site links to is loaded once more, because the cookie stayed back.
func TestPages(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "hers", "print a")
	ann, bob := p.signIn("ann", all...), p.signIn("bob", "sessions:read")
	w := ann.page("GET", "/", "none", nil)
	csp := w.Header().Get("Content-Security-Policy")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `data-id="hers"`) || !strings.Contains(w.Body.String(), "New session") ||
		!strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "require-trusted-types-for") {
		t.Errorf("%d, %s\n%s", w.Code, csp, w.Body)
	}
	if body := bob.page("GET", "/", "none", nil).Body.String(); strings.Contains(body, "hers") || strings.Contains(body, "New session") {
		t.Errorf("bob sees:\n%s", body)
	}
	if w := bob.page("GET", "/s/hers", "none", nil); w.Code != http.StatusNotFound {
		t.Errorf("bob opens ann's session: %d", w.Code)
	}
	if w := bob.page("GET", "/server", "none", nil); w.Code != http.StatusForbidden {
		t.Errorf("bob sees the server: %d", w.Code)
	}
	if w := p.signIn("op", "sessions:admin").page("GET", "/server", "none", nil); w.Code != 200 || !strings.Contains(w.Body.String(), "hers") {
		t.Errorf("the operator does not: %d", w.Code)
	}
	stranger := &browser{pages: p}
	if w := stranger.page("GET", "/s/hers", "cross-site", nil); w.Code != 200 || !strings.Contains(w.Body.String(), `content="0;url=/s/hers"`) {
		t.Errorf("linked from another site: %d\n%s", w.Code, w.Body)
	}
	if w := stranger.page("GET", "/nothing", "none", nil); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "MCP") {
		t.Errorf("nothing: %d\n%s", w.Code, w.Body)
	}
	if w := stranger.page("GET", assetPath("app.js"), "same-origin", nil); w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("an asset: %d %v", w.Code, w.Header())
	}
	if w := stranger.page("GET", "/assets/0/..%2ftemplates%2flayout.html", "none", nil); w.Code != http.StatusNotFound {
		t.Errorf("no asset: %d", w.Code)
	}
}

// An operator who has no sessions is told where those of others are, if there are any; nobody else hears of them.
func TestSessionsOfOthers(t *testing.T) {
	p := newPages(t)
	list := func(scopes ...string) string {
		return p.signIn("op", scopes...).page("GET", "/", "none", nil).Body.String()
	}
	if page := list("sessions:admin"); !strings.Contains(page, "A model that is connected") || strings.Contains(page, "/server\">The") {
		t.Errorf("where there are none: %s", page)
	}
	p.ran("ann", "hers", "print a")
	page := list("sessions:admin")
	if !strings.Contains(page, `<a href="/server">The server page</a> has a session of somebody else`) || strings.Contains(page, "A model that is connected") {
		t.Errorf("an operator, who runs nothing, reads %s", page)
	}
	if page := list(append(all, "sessions:admin")...); !strings.Contains(page, "A model that is connected") {
		t.Errorf("one who runs cells reads %s", page)
	}
	if page := list(all...); !strings.Contains(page, "A model that is connected") || strings.Contains(page, "somebody else") {
		t.Errorf("anybody else reads %s", page)
	}
}

// Who can sign in by a link only is told the command that makes one: outside of dev mode it needs a token, and in dev mode the server's
// data folder where that is not the one it looks for by itself.
func TestHowToMakeALink(t *testing.T) {
	p := newPages(t)
	stranger := &browser{pages: p}
	for dev, want := range map[bool]string{true: "<pre>cellblock open</pre>", false: "<pre>cellblock open --token-file FILE</pre>"} {
		p.viewer.Dev = dev
		if page := stranger.page("GET", "/signin", "none", nil).Body.String(); !strings.Contains(page, want) {
			t.Errorf("dev mode %v: %s", dev, page)
		}
	}
	p.viewer.Dev, p.viewer.DataDir = true, "/srv/my cells"
	if page := stranger.page("GET", "/signin", "none", nil).Body.String(); !strings.Contains(page, "<pre>cellblock open --data-dir &#39;/srv/my cells&#39;</pre>") {
		t.Errorf("with a data folder: %s", page)
	}
}

// Sessions are begun, restarted and closed, by who may.
func TestBeginAndEnd(t *testing.T) {
	p := newPages(t)
	ann := p.signIn("ann", all...)
	ann.want(403, "POST", "/sessions", map[string]any{"language": "bash"})
	ann.want(400, "POST", "/sessions", map[string]any{"language": "python", "session_id": "../x"})
	if body := ann.want(200, "POST", "/sessions", map[string]any{"language": "python", "session_id": " mine "}); !strings.Contains(body, `"mine"`) {
		t.Errorf("begun: %s", body)
	}
	ann.want(200, "POST", "/s/mine/restart", nil)
	ann.want(200, "POST", "/s/mine/interrupt", nil)
	p.signIn("bob", all...).want(404, "POST", "/s/mine/close", nil)
	p.signIn("ann", "sessions:read").want(403, "POST", "/s/mine/close", nil)
	ann.want(200, "POST", "/s/mine/close", nil)
	ann.want(404, "POST", "/s/mine/restart", nil)
	reader := p.signIn("ann", "sessions:read", "sessions:manage")
	reader.want(403, "POST", "/s/mine/close?files=delete", nil)
	for _, tt := range []struct {
		who  visit
		held bool
		want bool
	}{{ann.who, false, true}, {ann.who, true, false}, {reader.who, false, false}, {p.signIn("ann", "sessions:read", "files:write").who, false, false}} {
		if row := pastRow(sessions.StoredSession{ID: "mine", Held: tt.held}, sessions.Info{}, tt.who); row.MayDelete != tt.want {
			t.Errorf("held %v: may delete is %v", tt.held, row.MayDelete)
		}
	}
}

// The viewer takes what is its own, and every page that a person asks for; the rest is for programs.
func TestHas(t *testing.T) {
	v := newPages(t).viewer
	for _, tt := range []struct {
		method, path, accept string
		want                 bool
	}{
		{"GET", "/", "text/html", true}, {"GET", "/", "*/*", false}, {"GET", "/s/x", "*/*", true}, {"GET", "/nothing", "text/html", true},
		{"GET", "/nothing", "*/*", false}, {"POST", "/nothing", "text/html", false}, {"GET", "//s/x", "text/html", false},
		{"GET", "/s/../x", "text/html", false}, {"GET", "/s/.x", "text/html", true}, {"POST", "/signout", "*/*", true},
	} {
		r := httptest.NewRequest(tt.method, "http://h/", nil)
		r.URL.Path = tt.path
		r.Header.Set("Accept", tt.accept)
		if got := v.Has(r); got != tt.want {
			t.Errorf("%s %s (%s): %v", tt.method, tt.path, tt.accept, got)
		}
		w, person := httptest.NewRecorder(), tt.method == "GET" && tt.accept == "text/html"
		if answered := v.Nowhere(w, r); answered != person || person && (w.Code != 404 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")) {
			t.Errorf("%s %s (%s) where nothing is: %v, %d %v", tt.method, tt.path, tt.accept, answered, w.Code, w.Header())
		}
	}
}

// The address that one would guess of a session's page leads to it, also who must sign in first, and nowhere else.
func TestGuessedAddressOfASession(t *testing.T) {
	p := newPages(t)
	for _, b := range []*browser{p.signIn("ann", all...), {pages: p}} {
		for path, want := range map[string]string{
			"/sessions/mine": "/s/mine", "/sessions/mine?x=//other": "/s/mine", "/sessions/%2F%2Fother": "", "/sessions/%5Cother": "",
			"/sessions/a%0d%0ab": "", "/sessions/mine/": "",
		} {
			w := b.page("GET", path, "none", nil)
			code := map[bool]int{true: http.StatusSeeOther, false: http.StatusNotFound}[want != ""]
			if got := w.Header().Get("Location"); w.Code != code || got != want {
				t.Errorf("%s leads with %d to %q", path, w.Code, got)
			}
		}
	}
}

// A page that somebody has forgotten does not keep a kernel alive.
func TestWhatPagesShowIsNoUse(t *testing.T) {
	p := newPages(t)
	ann := p.signIn("ann", all...)
	p.ran("ann", "s", "print 1")
	used := func() time.Time {
		info, err := p.sessions.Get(t.Context(), ann.who.owner, "s")
		if err != nil {
			t.Fatal(err)
		}
		return info.LastUsed
	}
	before, shown := used(), map[string]int{}
	for _, r := range p.viewer.table {
		method, path, _ := strings.Cut(strings.NewReplacer("{id}", "s", "{number}", "1", "{$}", "").Replace(r.pattern), " ")
		if method == http.MethodGet && strings.HasPrefix(path, "/s/") && !strings.Contains(path, "{") {
			shown[strings.TrimPrefix(path, "/s/s")] = ann.send(method, path+"?from=1&to=1", nil).Code
		}
	}
	for _, part := range []string{"", "/cells", "/variables", "/details"} {
		if shown[part] != http.StatusOK {
			t.Errorf("the page's %q: %d of %v", part, shown[part], shown)
		}
	}
	if now := used(); !now.Equal(before) {
		t.Errorf("looking at the pages used the session %v later", now.Sub(before))
	}
	ann.want(http.StatusAccepted, "POST", "/s/s/run", map[string]string{"code": "print 2"})
	ann.ended("s", 2)
	if !used().After(before) {
		t.Error("running a cell did not use it")
	}
}
