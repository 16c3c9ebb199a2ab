package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// The modifiers of keys.
const (
	ctrl  = input.ModifierCtrl
	shift = input.ModifierShift
)

// key presses a key that is no character, as a keyboard does: what a page prevents does not happen.
func (p *tab) key(name string, modifiers ...input.Modifier) {
	p.t.Helper()
	codes := map[string]int64{"Enter": 13, "Tab": 9, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "Backspace": 8}
	var with input.Modifier
	for _, m := range modifiers {
		with |= m
	}
	down := input.DispatchKeyEvent(input.KeyDown).WithKey(name).WithCode(name).WithModifiers(with).WithWindowsVirtualKeyCode(codes[name])
	if name == "Enter" {
		down = down.WithText("\r")
	}
	up := input.DispatchKeyEvent(input.KeyUp).WithKey(name).WithCode(name).WithModifiers(with).WithWindowsVirtualKeyCode(codes[name])
	p.do(down, up)
}

// write types text at the cursor.
func (p *tab) write(text string) {
	p.t.Helper()
	p.do(input.InsertText(text))
}

// desk opens a session of the test's and puts the cursor into the editor.
func (p *tab) desk(id string) {
	p.t.Helper()
	p.open("/s/" + id)
	p.until("document.querySelector('#panel-fold')?.getAttribute('aria-expanded')")
	p.do(chromedp.Focus("#code", chromedp.ByQuery))
}

// code is what the editor holds.
func (p *tab) code() string { return eval[string](p, "document.querySelector('#code').value") }

// A person works beside a model: the model hears of it, and sees what the person did.
func TestTakeOver(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "shared", "answer = 41")
	p.desk("shared")
	p.untilText("#panel-variables", "answer")

	p.write("for i in range(2):")
	p.key("Enter")
	p.write("answer += i")
	if got := p.code(); got != "for i in range(2):\n    answer += i" {
		t.Errorf("the editor holds %q", got)
	}
	p.key("Enter", shift)
	p.untilText("#cells", "answer += i")
	p.untilText("#panel-variables", "42")
	if got := p.code(); got != "" {
		t.Errorf("behind the cell stands %q", got)
	}
	p.write("answer * 2")
	p.key("Enter", ctrl)
	p.untilText("#cells", "84")
	if got := p.code(); got != "answer * 2" {
		t.Errorf("Ctrl Enter left %q", got)
	}
	r := s.python(t, c, "shared", "answer")
	if text := r.Text; !strings.Contains(text, "a person ran cells 2–3") || !strings.Contains(text, "42") {
		t.Errorf("the model is told:\n%s", text)
	}
	if text := s.python(t, c, "shared", "answer").Text; strings.Contains(text, "person") {
		t.Errorf("it is told again:\n%s", text)
	}

	// What was written is there again, and so are earlier cells.
	p.open("/s/shared")
	p.do(chromedp.Focus("#code", chromedp.ByQuery))
	if got := p.code(); got != "answer * 2" {
		t.Errorf("the draft is %q", got)
	}
	for _, want := range []string{"answer", "answer * 2"} {
		p.do(chromedp.Evaluate("document.querySelector('#code').setSelectionRange(0, 0)", nil))
		p.key("ArrowUp")
		p.until("document.querySelector('#code').value === " + quoted(want))
	}
	p.do(chromedp.Evaluate("document.querySelector('#code').setSelectionRange(99, 99)", nil))
	for range 2 {
		p.key("ArrowDown")
	}
	p.until("document.querySelector('#code').value === 'answer * 2'")
}

// Tab completes and Shift Tab explains, by what the kernel knows; keys choose, and the focus stays in the text.
func TestCompletion(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	s.python(t, s.mcp(t), "helped", "table_one, table_two = 1, 2\ndef stretch(width):\n    'Makes it as wide as WIDTH.'")
	p.desk("helped")
	// asks presses Tab until the kernel has answered: on a busy machine it may be too late at first.
	asks := func(box string, modifiers ...input.Modifier) {
		t.Helper()
		p.expects("504")
		for range 10 {
			p.key("Tab", modifiers...)
			p.until("!document.querySelector('" + box + "').hidden || document.querySelector('#editor-note').textContent !== ''")
			if eval[bool](p, "!document.querySelector('"+box+"').hidden") {
				return
			}
		}
		t.Fatalf("the kernel says nothing: %s", p.text("#editor-note"))
	}
	p.write("tabl")
	asks("#matches")
	if n := p.count("#matches [role=option]"); n != 2 {
		t.Errorf("%d matches", n)
	}
	p.key("ArrowDown")
	p.until(`document.getElementById(document.querySelector('#code').getAttribute('aria-activedescendant')).innerText.includes('table_two')`)
	p.key("Enter")
	p.until("document.querySelector('#code').value === 'table_two' && document.querySelector('#matches').hidden")
	p.key("Enter")
	p.write("stretch")
	asks("#code-help", shift)
	p.untilText("#code-help", "as wide as WIDTH")
	p.key("Escape")
	p.until("document.querySelector('#code-help').hidden && document.activeElement.id === 'code'")
	p.key("Escape")
	p.until("document.activeElement.id !== 'code'") // and Tab goes on as everywhere
}

// What cannot be told while a cell runs is said, and no longer when it has ended.
func TestExplainWhileACellRuns(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "busy-helped", "import os, time")
	p.desk("busy-helped")
	s.start(t, c, "busy-helped", "while not os.path.exists('go'): time.sleep(0.05)")
	p.untilText("#state", "busy")
	p.write("print")
	p.expects("429")
	p.key("Tab", shift)
	p.untilText("#editor-note", "only an idle kernel")
	if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "busy-helped", "path": "go", "content": "x"}, nil); err != nil {
		t.Fatal(err)
	}
	p.until("document.querySelector('#editor-note').textContent === ''")
}

// A cell that does not end is interrupted, one that asks is answered, and neither a word nor a password is lost on the way.
func TestInterruptAndAnswer(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "asking", "1")
	p.desk("asking")
	p.write("while True: pass")
	p.key("Enter", shift)
	p.untilText("#state", "busy")
	p.until("document.querySelector('#interrupt').ariaDisabled === 'false'")
	p.write("print('never')")
	p.key("Enter", shift)
	p.untilText("#c3", "Take back")
	p.click("#c3 .takeback")
	p.untilText("#c3", "person in the viewer took this cell back before it ran")
	if n := p.count(".takeback"); n != 0 {
		t.Errorf("%d cells that run or have ended can be taken back", n)
	}
	p.click("#interrupt")
	p.untilText("#cells", "KeyboardInterrupt")
	p.untilText("#state", "idle")

	p.do(chromedp.Focus("#code", chromedp.ByQuery))
	p.write("import getpass\nname, word = input('Who? '), getpass.getpass('Word: ')\nprint(name, len(word))")
	p.key("Enter", shift)
	p.untilText("#prompt-text", "Who?")
	p.until("document.activeElement.id === 'prompt-line'")
	p.write("Ada")
	p.key("Enter")
	p.untilText("#prompt-text", "Word:")
	p.until("document.querySelector('#prompt-line').type === 'password'")
	p.write("secret")
	p.key("Enter")
	p.untilText("#cells", "Ada 6")
	p.until("document.querySelector('#prompt').hidden && document.activeElement.id === 'code'")
	for _, when := range []string{"live", "loaded again"} {
		p.until(`[...document.querySelectorAll('#c4 .item.asked')].map((asked) => asked.innerText.trim()).join() === 'Who? Ada,Word: ········'`)
		p.until(`document.querySelector('#c4 .item:last-child').innerText.includes('Ada 6')`)
		if when == "live" {
			p.open("/s/asking")
		}
	}
	if notebook := eval[string](p, `fetch('/s/asking/notebook').then((r) => r.text())`); !strings.Contains(notebook, "Who? Ada") || !strings.Contains(notebook, "Word: ····") || strings.Contains(notebook, "secret") {
		t.Errorf("the notebook has\n%s", notebook)
	}
	r, err := c.Call(t.Context(), "list_executions", map[string]any{"session_id": "asking"}, nil)
	if err != nil || strings.Contains(r.Text, "secret") {
		t.Errorf("%v %v", r, err)
	}
}

// What a lost kernel had is had again: every tab sees how far that is, and it goes on when the one that asked for it has gone.
func TestRestoreOutlivesItsTab(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "restored", "import os, time\nwhile os.path.exists('hold'): time.sleep(0.02)\nanswer = 42")
	s.python(t, c, "restored", "open('hold', 'w').close()")
	if _, err := c.Call(t.Context(), "restart_session", map[string]any{"session_id": "restored"}, nil); err != nil {
		t.Fatal(err)
	}
	p.desk("restored")
	p.until("!document.querySelector('#restore').hidden")
	p.click("#restore")
	p.untilText("dialog[open] h2", "Run the earlier cells again?")
	p.click("dialog[open] button.danger")
	p.untilText("#restore", "Restoring, 0 of 2")
	other := p.another(t)
	other.open("/s/restored")
	other.untilText("#restore", "Restoring, 0 of 2")
	p.do(chromedp.Navigate("about:blank"))
	if _, err := c.Call(t.Context(), "delete_file", map[string]any{"session_id": "restored", "path": "hold"}, nil); err != nil {
		t.Fatal(err)
	}
	other.untilText("#c4 .cell-status", "ok")
	other.until("document.querySelector('#restore').hidden && document.querySelector('#panel-restore').textContent === 'Run earlier cells again'")
	if text := s.python(t, c, "restored", "answer").Text; !strings.Contains(text, "42") {
		t.Errorf("the session has\n%s", text)
	}
}

// Files come by the button and go by the links; what would be lost is asked about.
func TestFiles(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "filed", "import os; os.mkdir('data')")
	p.desk("filed")
	p.click("#tab-files")
	p.untilText("#folder", "data/")
	p.click("[data-open=data]")
	p.until("document.querySelector('.path [data-open=data]')")

	from := t.TempDir()
	large := strings.Repeat("a,b\n1,2\n", 400_000) // of several parts
	for name, content := range map[string]string{"large.csv": large, "<img src=x onerror=alert(1)>.txt": "harmless"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.upload("#upload", filepath.Join(from, "large.csv"), filepath.Join(from, "<img src=x onerror=alert(1)>.txt"))
	p.untilText("#folder", "large.csv")
	p.untilText("#folder", "<img src=x")
	p.until("document.querySelectorAll('#uploads li').length === 0")
	if text := s.python(t, c, "filed", "sum(len(line) for line in open('data/large.csv'))").Text; !strings.Contains(text, "3200000") {
		t.Errorf("what came: %s", text)
	}

	eval[bool](p, `(() => {
		const dropped = new DataTransfer();
		dropped.items.add(new File(['dropped'], 'dropped.txt'));
		return document.querySelector('#panel-files').dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true}));
	})()`)
	p.untilText("#folder", "dropped.txt")

	eval[bool](p, `(() => {
		const event = new DragEvent('drop', {bubbles: true, cancelable: true});
		const folder = {webkitGetAsEntry: () => ({isDirectory: true, name: 'a folder'}), getAsFile: () => null};
		Object.defineProperty(event, 'dataTransfer', {value: {types: ['Files'], items: [folder]}}); // scripts drop no folders
		return document.querySelector('#panel-files').dispatchEvent(event);
	})()`)
	p.untilText(".toasts", "Folders cannot be uploaded: a folder.")
	p.click(".toasts button")

	p.click("[data-preview='data/large.csv']")
	p.until("document.querySelector('#preview').open && document.querySelector('#preview .sheet')")
	p.key("Escape")
	p.until("!document.querySelector('#preview').open")

	to := t.TempDir()
	p.download("a[href*='large.csv']", to)
	if got, err := os.ReadFile(filepath.Join(to, "large.csv")); err != nil || string(got) != large {
		t.Errorf("%d bytes were fetched, of %d: %v", len(got), len(large), err)
	}

	p.click("[data-delete='data/large.csv']")
	p.untilText("dialog[open] h2", "Delete data/large.csv?")
	p.click("dialog[open] button.danger")
	p.until("!document.querySelector('#folder').innerText.includes('large.csv')")
	if text := s.python(t, c, "filed", "os.listdir('data')").Text; strings.Contains(text, "large") || !strings.Contains(text, "onerror") {
		t.Errorf("what is left: %s", text)
	}
}

// Who may only look sees all of it, and can do nothing.
func TestReader(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "watched", "answer = 42")
	p := s.signIn(t, "sessions:read")
	p.open("/s/watched")
	p.untilText("#panel-variables", "answer")
	p.untilText("#editor-hint", "does not include python:execute")
	p.until("document.querySelector('#code').disabled")
	for _, what := range []string{"#run", "#restore", "#tab-files", "#interrupt", "#restart", "#panel-restore", "#upload"} {
		if p.count(what) != 0 {
			t.Errorf("there is %s", what)
		}
	}
	p.expects("403")
	status := eval[int](p, `fetch('/s/watched/run', {method: 'POST', body: '{"code":"1"}', headers: {'X-CSRF-Token': document.querySelector('meta[name=csrf]').content}}).then((r) => r.status)`)
	if status != 403 {
		t.Errorf("a cell is answered with %d", status)
	}
}

// upload chooses files in an input.
func (p *tab) upload(selector string, paths ...string) {
	p.t.Helper()
	var nodes []*cdp.Node
	p.do(chromedp.Nodes(selector, &nodes, chromedp.ByQuery), chromedp.ActionFunc(func(ctx context.Context) error {
		return dom.SetFileInputFiles(paths).WithNodeID(nodes[0].NodeID).Do(ctx)
	}))
}

// download follows a link to a file, and returns when that is whole in a folder.
func (p *tab) download(selector, folder string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	ended := make(chan browser.DownloadProgressState, 1)
	chromedp.ListenBrowser(ctx, func(event any) {
		if e, ok := event.(*browser.EventDownloadProgress); ok && e.State != browser.DownloadProgressStateInProgress {
			select {
			case ended <- e.State:
			default:
			}
		}
	})
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		return browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithBrowserContextID(p.own).WithDownloadPath(folder).WithEventsEnabled(true).Do(ctx)
	}))
	p.click(selector)
	select {
	case state := <-ended:
		if state != browser.DownloadProgressStateCompleted {
			p.t.Fatalf("the download is %s", state)
		}
	case <-ctx.Done():
		p.t.Fatal("nothing was downloaded")
	}
}

// A kernel that is restarted is said to be, also one that has run nothing.
func TestRestartIsSaid(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "restarted", "x = 1")
	p := s.signIn(t)
	p.desk("restarted")
	for range 2 { // the second time it has run nothing
		p.click("#restart")
		p.untilText("dialog[open] h2", "Restart restarted?")
		p.click("dialog button.danger")
		p.untilText(".toasts", "The kernel was restarted.")
		p.until("document.querySelector('#fresh').checkVisibility() && document.querySelector('#fresh').getBoundingClientRect().bottom <= document.querySelector('.toast').getBoundingClientRect().top")
		p.until("document.querySelector('#restore').checkVisibility() && !document.querySelector('#editor-hint').checkVisibility()") // there is no room for both
		p.click(".toasts button")
		p.until("!document.querySelector('.toast')")
	}
}

// Code that could not be run is put back, and the focus stays where somebody has gone meanwhile.
func TestCodeThatCouldNotBeRun(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "unrun", "x = 1")
	p := s.signIn(t)
	p.desk("unrun")
	const fails = `(() => {
		const {fetch} = globalThis;
		globalThis.fetch = (path, options) => (String(path).endsWith('/run') ? new Promise((_, fail) => { globalThis.fail = () => fail(new TypeError('no network')); }) : fetch(path, options));
		return true;
	})()`
	eval[bool](p, fails)
	for _, elsewhere := range []string{"#tab-details", "#code"} {
		p.do(chromedp.Focus("#code", chromedp.ByQuery))
		p.write("lost = 1")
		p.key("Enter", shift)
		p.until("document.querySelector('#code').value === '' && globalThis.fail")
		p.do(chromedp.Focus(elsewhere, chromedp.ByQuery))
		eval[bool](p, "(fail(), globalThis.fail = null, true)")
		p.until("document.querySelector('#code').value === 'lost = 1'")
		p.until(focused(elsewhere))
		eval[bool](p, "(document.querySelector('#code').value = '', true)")
	}
}

// A session that a model deletes under its page is said to be gone. When the model begins another of its name, the page shows that, and
// what was being written goes on.
func TestSessionIsMadeAnew(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "anew", "first = 1")
	p := s.signIn(t)
	p.expects("404") // of the panel, when nothing is there
	p.desk("anew")
	p.write("second +")
	if _, err := c.Call(t.Context(), "close_session", map[string]any{"session_id": "anew", "delete_files": true}, nil); err != nil {
		t.Fatal(err)
	}
	p.untilText("#state", "deleted")
	p.untilText("#cells", "first = 1")
	if p.code() != "second +" || !eval[bool](p, focused("#code")) {
		t.Errorf("the editor holds %q", p.code())
	}
	s.python(t, c, "anew", "second = 41")
	p.untilText("#cells", "second = 41")
	p.untilText("#state", "idle")
	p.until(focused("#code"))
	p.write(" 1")
	p.key("Enter", shift)
	p.untilText("#c2 .outputs", "42")
	if text := p.text("#cells"); strings.Contains(text, "first") {
		t.Errorf("the page shows the cells of both:\n%s", text)
	}
}

// A page that did not hear that its session was deleted, and another one of its name begun, shows that one when it hears again, and
// nothing of the first. What was being written goes on.
func TestSessionIsMadeAnewUnheard(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for n := range 3 {
		s.python(t, c, "unheard", fmt.Sprint("first = ", n))
	}
	line, p := s.signInByLine(t)
	p.desk("unheard")
	p.untilText("#state", "idle")
	p.write("second + 1")
	line.cut()
	p.untilText("#link-state", "Reconnecting")
	if _, err := c.Call(t.Context(), "close_session", map[string]any{"session_id": "unheard", "delete_files": true}, nil); err != nil {
		t.Fatal(err)
	}
	s.python(t, c, "unheard", "second = 41")
	line.mend()
	p.untilText("#c1", "second = 41")
	p.until(focused("#code"))
	p.key("Enter", shift)
	p.untilText("#c2 .outputs", "42")
	if text := p.text("#cells"); strings.Contains(text, "first") {
		t.Errorf("the page shows the cells of both:\n%s", text)
	}
}
