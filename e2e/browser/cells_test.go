package browser

import (
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// start has a cell run, and does not wait for it.
func (s *site) start(t *testing.T, c *rig.Client, session, code string) {
	t.Helper()
	if _, err := c.Call(t.Context(), "execute_python", map[string]any{"code": code, "session_id": session, "wait_seconds": 0}, nil); err != nil {
		t.Fatal(err)
	}
}

// A cell that a model runs appears as it runs: code, what it prints, its state and its end; so does the next, and a new kernel.
func TestCellsAreLive(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "live", "print('before')")
	p := s.signIn(t)
	p.open("/s/live")
	p.untilText("#c1 .outputs", "before")
	s.start(t, c, "live", "import os, time\nprint('one', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('two')")
	p.untilText("#c2 .code", "while not os.path.exists")
	p.untilText("#c2 .outputs", "one")
	p.untilText("#c2 .cell-status", "running")
	p.untilText("#state", "busy")
	if colours := p.count("#c2 .code .hl-k"); colours == 0 {
		t.Error("the code has no colours")
	}
	if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "live", "path": "go", "content": "x"}, nil); err != nil {
		t.Fatal(err)
	}
	p.until("document.querySelector('#c2 .outputs').innerText.trim() === 'one\\ntwo'")
	p.untilText("#c2 .cell-status", "ok")
	p.untilText("#state", "idle")
	if who := p.text("#c2 .origin"); who == "" {
		t.Error("nobody is named who ran the cell")
	}
	p.click("#restart")
	p.untilText("dialog h2", "Restart live?")
	p.click("dialog button.danger")
	p.until("document.getElementById('session').dataset.generation === '2'")
	s.python(t, c, "live", "1/0")
	p.untilText("#c3 .kernel-line", "Kernel 2")
	p.untilText("#c3 .error-name", "ZeroDivisionError")
	p.untilText("#c3 .cell-status", "error")
	if p.count(".cell") != 3 {
		t.Errorf("the page has %d cells", p.count(".cell"))
	}
}

// What clear_output, update_display and carriage returns do is seen as it is in a notebook, live and after the page was loaded again.
func TestOutputsThatReplaceOthers(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	p := s.signIn(t)
	s.python(t, c, "replace", "from IPython.display import display, clear_output\nh = display({'text/plain': 'first'}, raw=True, display_id='d')\nprint('x')\nclear_output()\nprint('y')")
	p.open("/s/replace")
	p.until("document.querySelector('#c1 .outputs').innerText.trim() === 'y'")
	s.python(t, c, "replace", "h = display({'text/plain': 'old'}, raw=True, display_id='e')")
	p.untilText("#c2 .outputs", "old")
	s.python(t, c, "replace", "h.update({'text/plain': 'new'}, raw=True)\nprint(' 10%|#  |', end='\\r')\nprint('100%|###|')")
	for _, when := range []string{"live", "loaded again"} {
		p.until("document.querySelector('#c2 .outputs').innerText.trim() === 'new'")
		p.until("document.querySelector('#c3 .outputs').innerText.trim() === '100%|###|'")
		if p.count("#c1 .item") != 1 || p.count("#c3 .item") != 1 {
			t.Errorf("%s: %d and %d items", when, p.count("#c1 .item"), p.count("#c3 .item"))
		}
		p.open("/s/replace")
	}
}

// A page that loses its connection shows, when it has it again, all that came meanwhile, and nothing twice.
func TestConnectionLostAndFound(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "lost", "print('first')")
	line, p := s.signInByLine(t)
	p.open("/s/lost")
	p.untilText("#c1 .outputs", "first")
	s.start(t, c, "lost", "import os, time\nfor i in range(100000):\n    if os.path.exists('stop'): break\n    print('line', i, flush=True); time.sleep(0.01)\nprint('the end', i)")
	p.untilText("#c2 .outputs", "line 3")
	line.cut()
	p.untilText("#link-state", "Reconnecting")
	if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "lost", "path": "stop", "content": "x"}, nil); err != nil {
		t.Fatal(err)
	}
	const away = 65 // more than are told one by one
	for range away {
		s.python(t, c, "lost", "print('while it was away')")
	}
	line.mend()
	for _, n := range []int{away + 2, 4, 3} {
		p.untilCell(n, "cell.querySelector('.outputs').innerText.includes('while it was away')")
	}
	p.untilCell(2, "cell.querySelector('.outputs').innerText.includes('the end')")
	p.until("document.querySelector('#c2 .cell-status').innerText === 'ok'")
	if p.count(".cell") != away+2 || strings.Count(p.text("#c2 .outputs"), "the end") != 1 || strings.Count(p.text("#c2 .outputs"), "line 3\n") != 1 {
		t.Errorf("%d cells, the second shows\n%s", p.count(".cell"), p.text("#c2 .outputs"))
	}
}
