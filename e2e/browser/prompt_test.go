package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Who writes code while a cell asks goes on writing: what was meant for the editor is not sent as the answer.
func TestPromptWhileCodeIsWritten(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "writing", "import os, time")
	p.desk("writing")
	asks := func(question, file string) {
		t.Helper()
		p.write("while not os.path.exists('" + file + "'): time.sleep(0.02)\nprint('got', repr(input('" + question + "')))")
		p.key("Enter", shift)
		p.untilText("#state", "busy")
	}
	touch := func(file string) {
		t.Helper()
		if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "writing", "path": file, "content": "x"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(text string) {
		t.Helper()
		p.do(chromedp.Focus("#prompt-line", chromedp.ByQuery))
		p.write(text)
		p.key("Enter")
		p.untilText("#cells", "got '"+text+"'")
		p.untilText("#state", "idle")
		p.do(chromedp.Focus("#code", chromedp.ByQuery))
	}

	asks("Name? ", "go1")
	p.write("x = [1,")
	touch("go1")
	p.untilText("#prompt-text", "Name?")
	p.until("/^Cell 2 asks: Name\\?/.test(document.querySelector('#prompt-said[role=status]').textContent.trim())")
	p.key("Enter")
	p.write("2]")
	if got := p.code(); !strings.HasPrefix(got, "x = [1,\n") || !strings.HasSuffix(got, "2]") {
		t.Errorf("the editor holds %q", got)
	}
	answer("Ada")
	p.until("document.querySelector('#prompt-said').textContent === ''")
	p.do(chromedp.Evaluate("document.querySelector('#code').select()", nil))
	p.key("Backspace")

	// All is deleted, to be written anew.
	asks("Place? ", "go2")
	p.write("x")
	p.key("Backspace")
	p.until("document.querySelector('#code').value === ''")
	touch("go2")
	p.untilText("#prompt-text", "Place?")
	p.until("document.querySelector('#prompt-said').textContent.includes('Place?') && document.activeElement.id === 'code'")
	answer("Rome")

	// Nobody writes.
	asks("Time? ", "go3")
	touch("go3")
	p.untilText("#prompt-text", "Time?")
	p.until("document.activeElement.id === 'prompt-line' && document.querySelector('#prompt-said').textContent === ''")
}

// An answer that is being written is there again when the page is loaded again, but no password, and no answer to what was asked before.
// One that cannot be sent is not lost.
func TestAnswerIsKept(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "answers", "1")
	p := s.signIn(t)
	p.desk("answers")
	p.write("import getpass\n(input('Who? '), input('Where? '), len(getpass.getpass('Word: ')))")
	p.key("Enter", shift)
	asked := func(what string) {
		t.Helper()
		p.untilText("#prompt-text", what)
		p.until("document.activeElement.id === 'prompt-line'")
	}
	holds := func(want string) {
		t.Helper()
		if got := eval[string](p, "document.querySelector('#prompt-line').value"); got != want {
			t.Errorf("the answer is %q, want %q", got, want)
		}
	}
	asked("Who?")
	p.write("Ad")
	p.open("/s/answers")
	asked("Who?")
	holds("Ad")
	p.write("a")
	eval[bool](p, `(() => {
		const {fetch} = globalThis;
		globalThis.fetch = (path, options) => (String(path).endsWith('/answer') ? Promise.reject(new TypeError('no network')) : fetch(path, options));
		return true;
	})()`)
	p.key("Enter")
	p.untilText(".toasts", "The server cannot be reached.")
	holds("Ada")
	p.open("/s/answers")
	asked("Who?")
	p.key("Enter")
	asked("Where?")
	holds("")
	p.open("/s/answers")
	asked("Where?")
	holds("")
	p.key("Enter")
	asked("Word:")
	p.write("secret")
	p.open("/s/answers")
	asked("Word:")
	holds("")
	p.key("Enter")
	p.untilText("#c2 .outputs", "('Ada', '', 0)")
}
