package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Tabs that open and close, and parts of pages that want more, leave the pages alone that are open: these hear on, and fetch nothing
// again.
func TestTabsLeaveEachOtherAlone(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "steady", "print('first')")
	s.python(t, c, "other", "print('other')")
	p := s.signIn(t)
	p.open("/s/steady")
	p.untilText("#c1 .outputs", "first")
	s.python(t, c, "steady", "print('second')")
	p.untilText("#c2 .outputs", "second")
	const fetched = `performance.getEntriesByType('resource').filter(({name}) => name.includes('/cells?')).length`
	before := p.count(".cell") + eval[int](p, fetched)
	p.click("#tab-resources") // which it did not hear so far
	p.until("document.getElementById('memory-now').textContent !== ''")
	another := p.another(t)
	for _, path := range []string{"/s/steady", "/s/other", "/"} {
		another.open(path)
		another.untilText("#main", map[string]string{"/s/steady": "second", "/s/other": "other", "/": "other"}[path])
	}
	another.do(chromedp.Navigate("about:blank"))
	s.python(t, c, "steady", "print('third')")
	p.until("document.querySelector('#c3 .outputs')?.textContent.includes('third')") // what no window shows has no text
	if after := p.count(".cell") + eval[int](p, fetched); after != before+1 {
		t.Errorf("the page has %d cells and fetches, then %d", before, after)
	}
}

// Where a browser has no SharedWorker, each page has a stream of its own, and all that pages do works as elsewhere.
func TestNoSharedWorker(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "alone", "print('first')")
	p := s.signIn(t)
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument("delete globalThis.SharedWorker").Do(ctx)
		return err
	}))
	p.open("/s/alone")
	if eval[bool](p, "'SharedWorker' in globalThis") {
		t.Fatal("the page has a SharedWorker")
	}
	p.untilText("#c1 .outputs", "first")
	s.python(t, c, "alone", "held = bytearray(10**8)\nprint('second')")
	p.untilText("#c2 .outputs", "second")
	p.click("#tab-resources")
	p.until("document.getElementById('memory-now').textContent !== ''")
	p.click("#tab-variables")
	p.untilText("#panel-variables", "held")
	s.python(t, c, "alone", "print('third')")
	p.untilText("#c3 .outputs", "third")
	p.open("/")
	p.untilText("tr[data-id=alone] .state", "idle")
}

// timers has a page keep its long timers until hurry is called, and wait for answers a twentieth of the time; and let a test speak
// for the server of the stream.
const timers = `
delete globalThis.SharedWorker;
const {setTimeout: set, clearTimeout: clear, EventSource: Source} = globalThis, timeout = AbortSignal.timeout, far = 1e9;
globalThis.late = new Map();
let count = far;
globalThis.setTimeout = (run, ms, ...args) => {
  if (!(ms > 30000)) return set(run, ms, ...args);
  late.set(++count, run);
  return count;
};
globalThis.clearTimeout = (id) => late.delete(id) || clear(id);
globalThis.hurry = () => [...late].forEach(([id, run]) => late.delete(id) && run());
globalThis.EventSource = class extends Source {
  constructor(...args) {
    super(...args);
    globalThis.source = this;
  }
};
AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 20);
`

// A stream whose path has died without a word is given up when not even its beat comes, and a change of it that is not answered does
// not hold up all later ones.
func TestPathDiesSilently(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "silent", "print('first')")
	line, p := s.signInByLine(t)
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(timers).Do(ctx)
		return err
	}))
	p.open("/s/silent")
	s.python(t, c, "silent", "print('second')")
	p.untilText("#c2 .outputs", "second")
	for _, event := range []string{"beat", "none"} {
		restarted := eval[bool](p, `(() => {
			const before = [...late.keys()].join();
			source.dispatchEvent(new MessageEvent('`+event+`', {data: '0'}));
			return late.size > 0 && before !== [...late.keys()].join();
		})()`)
		if restarted != (event == "beat") {
			t.Errorf("%s: the page waits anew: %v", event, restarted)
		}
	}
	line.deaden()
	s.python(t, c, "silent", "print('third')")
	if p.count("#c3") != 0 {
		t.Fatal("the stream is not dead")
	}
	eval[bool](p, "hurry() ?? true")
	p.untilText("#c3 .outputs", "third")

	eval[bool](p, `(() => {
		const ask = fetch;
		globalThis.fetch = (path, options) => path !== '/live' ? ask(path, options) : new Promise((_, no) => {
			globalThis.asked = true;
			options.signal?.addEventListener('abort', () => no(options.signal.reason));
		});
		return true;
	})()`)
	p.click("#tab-resources")
	p.until("globalThis.asked")
	p.until("document.getElementById('memory-now').textContent !== ''")
}

// What comes when a cell has ended is shown, also of a cell that had ended before the page was opened, and what is to be done about what
// the cell has printed stays below it.
func TestLateOutput(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	const code = "def later(gate):\n    gate.wait(60); print('later', file=sys.stderr)\ngates.append(threading.Event()); threading.Thread(target=later, args=gates[-1:]).start()\n!nosuchprogram"
	s.python(t, c, "late", "import sys, threading\ngates = []\n"+code)
	p.open("/s/late")
	p.untilText("#c1 .outputs", "is not installed")
	s.python(t, c, "late", code)
	p.untilText("#c2 .outputs", "is not installed")
	s.python(t, c, "late", "for gate in gates: gate.set()")
	for _, cell := range []string{"#c1", "#c2"} {
		p.untilText(cell+" .outputs", "later")
		if text := eval[string](p, fmt.Sprintf("document.querySelector('%s .outputs').innerText", cell)); strings.Index(text, "later") > strings.Index(text, "is not installed") {
			t.Errorf("it reads\n%s", text)
		}
	}
}
