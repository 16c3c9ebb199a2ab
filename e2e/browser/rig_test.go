// Package browser drives the viewer in a real Chromium, as people do.
//
// One browser and, unless a test needs its own, one server serve all tests. Each test is a subject of its own, so that its
// sessions are its own, in a browser context of its own, so that its cookies are. A page that logs an error, throws one or
// breaks its policy fails its test, unless that says so before.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"cellblock/e2e/chromium"
	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

// patience bounds every wait. What waits for it has failed.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	ctx, cancel := context.WithCancel(context.Background())
	browserContext = sync.OnceValues(func() (browser context.Context, err error) {
		browser, stopBrowser, err = chromium.Start(ctx)
		return browser, err
	})
	code := rig.Run(m)
	stopShared()
	stopBrowser()
	cancel()
	os.Exit(code)
}

var (
	browserContext func() (context.Context, error)
	stopBrowser    = func() {}
)

// site is a server that browsers look at.
type site struct {
	*rig.Server
	// base is its address without a path.
	base string
}

func siteOf(s *rig.Server) *site { return &site{s, strings.TrimSuffix(s.URL, "/mcp")} }

// needs skips the test, loudly, where what it needs is missing.
func needs(t *testing.T) {
	t.Helper()
	kernelstest.Need(t, chromium.Program() != "", "Chromium (Debian's package chromium)")
	_, err := exec.LookPath("bwrap")
	kernelstest.Need(t, err == nil, "bubblewrap")
}

// shared is a server for all tests that do nothing to it.
func shared(t *testing.T) *site {
	t.Helper()
	needs(t)
	sharedOnce.Do(func() {
		host := &hostTest{TB: t}
		sharedSite = siteOf(rig.Install(host, rig.RuntimeFlags("local")...).Serve(host))
		stopShared = host.end
	})
	if sharedSite == nil {
		t.Fatal("the shared server did not start")
	}
	return sharedSite
}

var (
	sharedOnce sync.Once
	sharedSite *site
	stopShared = func() {}
)

// hostTest stands for the test that happened to start the shared server, which outlives it.
type hostTest struct {
	testing.TB
	ends []func()
}

func (h *hostTest) Cleanup(f func()) { h.ends = append(h.ends, f) }

func (h *hostTest) TempDir() string {
	dir, err := os.MkdirTemp("", "cb-browser")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Errorf fails the package: the test is over.
func (h *hostTest) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (h *hostTest) end() {
	for i := len(h.ends) - 1; i >= 0; i-- {
		h.ends[i]()
	}
}

// subject is who a test is, on a server that many tests use.
func subject(t *testing.T) string { return strings.ReplaceAll(t.Name(), "/", ".") }

// link is an address that signs in, once, as the test's subject; scopes are all where none is named.
func (s *site) link(t *testing.T, scopes ...string) string {
	t.Helper()
	return s.linkOf(t, subject(t), scopes...)
}

// linkOf is an address that signs in, once, as somebody.
func (s *site) linkOf(t *testing.T, who string, scopes ...string) string {
	t.Helper()
	args := []string{"open", "--data-dir", s.DataDir, "--url", s.URL, "--subject", who}
	if len(scopes) > 0 {
		args = append(args, "--scopes", strings.Join(scopes, ","))
	}
	cmd := exec.Command(rig.Cellblock(), args...)
	cmd.Env = rig.Environment()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// mcp connects an MCP client for the test's subject.
func (s *site) mcp(t *testing.T) *rig.Client {
	t.Helper()
	return s.Connect(t, s.Token(t, "--subject", subject(t)), false)
}

// python runs a cell as a model does, and waits for its end.
func (s *site) python(t *testing.T, c *rig.Client, session, code string) rig.Result {
	t.Helper()
	r, err := c.Call(t.Context(), "execute_python", map[string]any{"code": code, "session_id": session, "wait_seconds": 60}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tab is one tab of a browser context.
type tab struct {
	t    *testing.T
	site *site
	ctx  context.Context
	own  cdp.BrowserContextID // which has the cookies

	mu       sync.Mutex
	problems []string
	expected []string
}

// stranger opens a tab in a context of its own, where nobody is signed in.
func (s *site) stranger(t *testing.T) *tab {
	t.Helper()
	browser, err := browserContext()
	if err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	var own cdp.BrowserContextID
	var first target.ID
	err = chromedp.Run(browser, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		if own, err = target.CreateBrowserContext().Do(ctx); err != nil {
			return err
		}
		// A context has no window until it is given one.
		first, err = target.CreateTarget("about:blank").WithBrowserContextID(own).WithNewWindow(true).Do(ctx)
		return err
	}))
	if err != nil {
		t.Fatalf("no browser context: %v", err)
	}
	t.Cleanup(func() {
		_ = chromedp.Run(browser, chromedp.ActionFunc(func(ctx context.Context) error {
			return target.DisposeBrowserContext(own).Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		}))
	})
	return newTab(t, s, browser, own, first)
}

// signIn opens a tab in a context of its own and signs in as the test's subject.
func (s *site) signIn(t *testing.T, scopes ...string) *tab {
	t.Helper()
	tab := s.stranger(t)
	tab.do(chromedp.Navigate(s.link(t, scopes...)), chromedp.WaitVisible("#main h1"))
	return tab
}

// another opens another tab of the same browser context.
func (p *tab) another(t *testing.T) *tab {
	t.Helper()
	var id target.ID
	p.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		id, err = target.CreateTarget("about:blank").WithBrowserContextID(p.own).Do(ctx)
		return err
	}))
	return newTab(t, p.site, p.ctx, p.own, id)
}

func newTab(t *testing.T, s *site, parent context.Context, own cdp.BrowserContextID, id target.ID) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithTargetID(id))
	p := &tab{t: t, site: s, ctx: ctx, own: own}
	chromedp.ListenTarget(ctx, p.hear)
	t.Cleanup(func() {
		if t.Failed() {
			p.dump()
		}
		cancel()
		p.checkProblems()
	})
	p.do(log.Enable(), runtime.Enable(), chromedp.EmulateViewport(1280, 900))
	return p
}

// hear collects what goes wrong in the page.
func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "exception: "+e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			p.problems = append(p.problems, fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError {
			p.problems = append(p.problems, fmt.Sprintf("console.error: %s", e.Args[0].Value))
		}
	}
}

// expects says that problems with one of these texts are what the test is about.
func (p *tab) expects(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, texts...)
}

// checkProblems fails the test for what went wrong in the page unexpectedly.
func (p *tab) checkProblems() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		known := false
		for _, text := range p.expected {
			known = known || strings.Contains(problem, text)
		}
		if !known {
			p.t.Errorf("in the page: %s", problem)
		}
	}
}

// dump shows the page of a test that failed.
func (p *tab) dump() {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	var where, text string
	if err := chromedp.Run(ctx, chromedp.Location(&where), chromedp.Evaluate(`document.body.innerText`, &text)); err == nil {
		p.t.Logf("the page %s:\n%.4000s", where, text)
	}
}

// do carries out actions, or fails the test.
func (p *tab) do(actions ...chromedp.Action) {
	p.t.Helper()
	if p.ctx.Err() != nil {
		p.t.Fatalf("the tab is gone: %v", p.ctx.Err())
	}
	// The first run of a tab's context starts it, and must not be given a shorter life than it has.
	if chromedp.FromContext(p.ctx).Target == nil {
		if err := chromedp.Run(p.ctx); err != nil {
			p.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("in the browser: %v", err)
	}
}

// open goes to a path and waits until it shows a heading.
func (p *tab) open(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.site.base+path), chromedp.WaitVisible("#main"))
}

// eval returns the value of an expression; a promise's, when that is known.
func eval[T any](p *tab, expression string) (value T) {
	p.t.Helper()
	p.do(chromedp.Evaluate(expression, &value, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	return value
}

// until waits until an expression is true, in this page or in one that comes after it.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		err := chromedp.Run(ctx, chromedp.Poll(expression, nil, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(0)))
		switch {
		case err == nil:
			return
		case ctx.Err() != nil || !pageWent(err):
			p.t.Fatalf("it never was so: %s (%v)", expression, err)
		}
	}
}

// pageWent tells whether an error says only that the page was left meanwhile.
func pageWent(err error) bool {
	return strings.Contains(err.Error(), "navigated or closed") || strings.Contains(err.Error(), "context was destroyed") ||
		strings.Contains(err.Error(), "Cannot find context")
}

// untilText waits until what a selector finds first shows a text.
func (p *tab) untilText(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%s)?.innerText.includes(%s)", quoted(selector), quoted(text)))
}

// text is what a selector finds first, as people read it.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quoted(selector)))
}

// count is how many elements a selector finds.
func (p *tab) count(selector string) int {
	p.t.Helper()
	return eval[int](p, fmt.Sprintf("document.querySelectorAll(%s).length", quoted(selector)))
}

// press presses keys, as chromedp.KeyEvent writes them, in what has the focus.
func (p *tab) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// click clicks what a selector finds first.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(selector, chromedp.ByQuery))
}

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
