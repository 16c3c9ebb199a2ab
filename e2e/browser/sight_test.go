package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// inSight is true when all of what a selector finds first is in the window, and nothing lies over its middle.
func inSight(selector string) string {
	return fmt.Sprintf(`(() => {
		const node = document.querySelector(%s), at = node?.getBoundingClientRect();
		return Boolean(at) && at.height > 0 && at.top >= 0 && at.bottom <= innerHeight && node.contains(document.elementFromPoint(at.left + at.width / 2, at.top + at.height / 2));
	})()`, quoted(selector))
}

// tall is code that fills more than a window, and whose variables fill the panel.
const tall = "for i in range(80): globals()[f'number_{i}'] = i\nfor i in range(30): print('line', i)"

// At the end of a long page the panel's tabs can be reached, and one's own cell comes into sight from wherever it is run.
func TestEndOfALongPage(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for range 6 {
		s.python(t, c, "tall", tall)
	}
	p := s.signIn(t)
	for i, size := range [][2]int64{{1280, 700}, {1280, 900}, {390, 844}} {
		wide := size[0] > 1000
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		p.open("/s/tall")
		p.until("document.querySelector('#follow').ariaPressed === 'true' && document.documentElement.scrollHeight - innerHeight - scrollY < 2 && scrollY > 1000")
		if wide {
			p.untilText("#panel-variables", "number_40")
			for _, tab := range []string{"#tab-variables", "#tab-details"} {
				p.until(inSight(tab))
			}
			p.until("document.querySelector('.panel').getBoundingClientRect().top >= document.querySelector('.session-bar').getBoundingClientRect().bottom")
		}
		p.until("document.querySelector('#editor').getBoundingClientRect().left <= document.querySelector('.cell').getBoundingClientRect().left - 3") // also the mark beside a cell
		eval[bool](p, "(dispatchEvent(new WheelEvent('wheel', {deltaY: -600})), scrollTo(0, scrollY - 600), true)")
		p.until("document.querySelector('#follow').ariaPressed === 'false'")
		p.do(chromedp.Focus("#code", chromedp.ByQuery))
		p.write("'my own'")
		p.key("Enter", shift)
		p.untilText(fmt.Sprintf("#c%d .outputs", 7+i), "my own")
		p.until(inSight(fmt.Sprintf("#c%d .outputs", 7+i)))
	}
	p.write("input('Who? ')\nfor i in range(30): print('said', i)")
	p.key("Enter", shift)
	p.until("document.activeElement.id === 'prompt-line'")
	p.write("Ada")
	p.key("Enter") // the prompt goes, which makes the page shorter
	p.untilText("#c10 .outputs", "said 29")
	p.until("document.querySelector('#prompt').hidden && document.documentElement.scrollHeight - innerHeight - scrollY < 2")
	if !eval[bool](p, "document.querySelector('#follow').ariaPressed === 'true'") {
		t.Error("it follows no more")
	}
}

// The editor stays where it is while somebody writes in it and cells come, few or many.
func TestEditorStays(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	p := s.signIn(t)
	for id, size := range map[string][2]int64{"stays-wide": {1280, 900}, "stays-narrow": {390, 844}} {
		s.python(t, c, id, "'few'")
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		p.desk(id)
		p.until("document.querySelector('#state').innerText === 'idle'")
		p.write("x = 1\ny = 2")
		const bottom = "Math.round(document.querySelector('#code').getBoundingClientRect().bottom)"
		before := eval[int](p, bottom)
		for n, code := range []string{"print('more')", tall, "'much'"} {
			s.python(t, c, id, code)
			p.until(fmt.Sprintf("document.querySelector('#c%d .cell-status')?.innerText === 'ok' && document.querySelector('#state').innerText === 'idle'", n+2))
			p.until("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))")
			if after := eval[int](p, bottom); after < before-2 || after > before+2 {
				t.Errorf("%s: with cell %d the editor goes from %d to %d", id, n+2, before, after)
			}
		}
	}
}

// In a window that is low, as one is that is zoomed into, the cells have most of the room.
func TestLowWindow(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for range 4 {
		s.python(t, c, "low", tall)
	}
	p := s.signIn(t)
	for _, size := range [][2]int64{{1280, 360}, {640, 430}, {320, 256}} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		p.open("/s/low")
		p.until("document.querySelector('#follow').ariaPressed === 'true' && scrollY > 1000")
		p.do(chromedp.Evaluate("location.hash = '#c2'", nil))
		p.until(inSight("#c2 .cell-head"))
		const room = `Array.from({length: 20}, (_, i) => document.elementFromPoint(60, (i + 0.5) * innerHeight / 20)).filter((at) => at?.closest('#cells')).length / 20`
		if part := eval[float64](p, room); part < 0.6 {
			t.Errorf("in %v cells have %.2f of the window", size, part)
		}
		p.press("j")
		p.until(inSight("#c3 .cell-head"))
	}
}

// A page that follows goes on doing so when it is loaded again while a cell runs: the cell is told anew, and is not laid out at once.
func TestEndOfAPageLoadedAgain(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.start(t, c, "again", "import os, time\nfor i in range(30): print('line', i)\n"+untilLetGo+"\nprint('the end')")
	p := s.signIn(t)
	p.do(chromedp.ActionFunc(func(ctx context.Context) error { // scripts measure the page when they like
		_, err := page.AddScriptToEvaluateOnNewDocument(`addEventListener('DOMContentLoaded', () => {
			new MutationObserver(() => document.body.offsetHeight).observe(document.getElementById('cells') ?? document.body, {childList: true, subtree: true});
		})`).Do(ctx)
		return err
	}))
	p.do(chromedp.EmulateViewport(1280, 600))
	p.open("/s/again")
	p.untilText("#c1 .outputs", "line 29")
	p.do(chromedp.Reload())
	p.until("document.querySelector('#interrupt').ariaDisabled === 'false' && scrollY > 100")
	letGo(t, c, "again")
	p.untilText("#c1 .outputs", "the end")
	p.until("document.documentElement.scrollHeight - innerHeight - scrollY < 2")
	if !eval[bool](p, "document.querySelector('#follow').ariaPressed === 'true'") {
		t.Error("it follows no more")
	}
}

// A connection that is lost is told where one looks, and no clock goes on as if somebody heard of what it measures.
func TestLostConnectionIsInSight(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for range 4 {
		s.python(t, c, "unheard", tall)
	}
	line, p := s.signInByLine(t)
	p.open("/s/unheard")
	s.start(t, c, "unheard", "import os, time\nwhile not os.path.exists('stop'): time.sleep(0.02)")
	p.until("document.querySelector('#elapsed').textContent !== '' && document.querySelector('#c5 .took')?.textContent")
	p.until("scrollY > 1000")
	line.cut()
	p.untilText("#link-state", "Reconnecting")
	p.until(inSight("#link-state"))
	clocks := "document.querySelector('#elapsed').textContent + document.querySelector('#c5 .took').textContent"
	before := eval[string](p, clocks)
	eval[bool](p, `(() => {
		const time = Object.assign(document.createElement('time'), {id: 'other', dateTime: new Date(Date.now() - 10000).toISOString()});
		time.dataset.show = 'ago';
		document.body.append(time);
		return true;
	})()`)
	p.until("Number.parseInt(document.querySelector('#other').textContent) >= 12") // the page's times have gone on
	if after := eval[string](p, clocks); after != before {
		t.Errorf("the clocks say %s, then %s", before, after)
	}
	line.mend()
	p.until("document.querySelector('#link-state').textContent === ''")
	p.until(clocks + " !== " + quoted(before))
	if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "unheard", "path": "stop", "content": "x"}, nil); err != nil {
		t.Fatal(err)
	}
}

// A picture that is clicked on is larger than it was, and all of it is in the window.
func TestPictureGrows(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "grows", `from IPython.display import display, SVG, Image
import struct, zlib
def png(w, h):
    chunk = lambda kind, data: struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', w, h, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress((b'\0' + b'\x20\x60\xc0' * w) * h)) + chunk(b'IEND', b'')
display(Image(png(547, 413)), Image(png(3000, 400)), Image(png(300, 2400)), Image(png(40, 30)))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><rect width="200" height="100" fill="teal"/></svg>'))`)
	p := s.signIn(t)
	for _, size := range [][2]int64{{1280, 900}, {390, 844}} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		p.open("/s/grows")
		p.until("document.querySelectorAll('.enlarge img').length === 5")
		for i := range 5 {
			picture := fmt.Sprintf("document.querySelectorAll('.enlarge img')[%d]", i)
			p.until(fmt.Sprintf("(%s.scrollIntoView({block: 'center'}), %s.complete)", picture, picture))
			eval[bool](p, picture+".click() ?? true")
			p.until("document.querySelector('.lightbox img')?.complete && document.querySelector('.lightbox img').clientWidth > 0")
			wrong := eval[string](p, fmt.Sprintf(`(() => {
				const box = document.querySelector('.lightbox'), {width, height, top, left, right, bottom} = box.querySelector('img').getBoundingClientRect(), small = %s;
				if (left < 0 || top < 0 || right > innerWidth || bottom > innerHeight || box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) return 'it is cut';
				if (Math.abs(width / height / (small.naturalWidth / small.naturalHeight) - 1) > 0.02) return 'it is stretched';
				const full = width > 0.85 * innerWidth || height > 0.8 * innerHeight;
				return full || width >= 1.9 * small.clientWidth ? '' : 'it has not grown: ' + width + ' of ' + small.clientWidth;
			})()`, picture))
			if wrong != "" {
				t.Errorf("picture %d in %v: %s", i, size, wrong)
			}
			p.key("Escape")
			p.until("!document.querySelector('.lightbox')")
		}
	}
}

// A long text is unfolded where it stands, with its beginning and its end, and folded again; all of it is a file.
func TestLongTextUnfolds(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for _, lines := range []int{5000, 300_000} {
		s.python(t, c, "wordy", fmt.Sprintf("print('\\n'.join(f'line {i} ' + 'x' * 60 for i in range(%d)))", lines))
	}
	s.python(t, c, "wordy", tall) // a page that ends with the text has less room to stay where it is
	p := s.signIn(t)
	for cell, last := range map[int]string{1: "line 4999 ", 2: "line 299999 "} {
		p.open("/s/wordy")
		in := fmt.Sprintf("#c%d ", cell)
		p.until("document.querySelector('#follow').ariaPressed === 'true' && document.querySelector('" + in + ".unfold')")
		p.showCell(cell)
		p.untilText(in+".outputs", last)
		const top = "Math.round(document.querySelector('%s.item').getBoundingClientRect().top)"
		p.do(chromedp.Evaluate("document.querySelector('#follow').ariaPressed === 'true' || document.querySelector('#follow').click()", nil))
		p.do(chromedp.Evaluate("document.querySelector('"+in+".unfold').scrollIntoView({block: 'center'})", nil))
		eval[bool](p, "document.addEventListener('click', () => { globalThis.before = "+fmt.Sprintf(top, in)+"; }, {capture: true, once: true}) ?? true")
		p.click(in + ".unfold")
		p.until("document.activeElement === document.querySelector('" + in + ".unfolded')")
		text := "document.querySelector('" + in + ".unfolded').textContent"
		for _, part := range []string{"line 0 ", "line 2500 ", last} {
			if !eval[bool](p, text+".includes("+quoted(part)+")") {
				t.Errorf("cell %d, unfolded, has no %s", cell, part)
			}
		}
		before, after := eval[int](p, "before"), eval[int](p, fmt.Sprintf(top, in))
		if after < before-2 || after > before+2 {
			t.Errorf("cell %d jumps from %d to %d", cell, before, after)
		}
		if high := eval[int](p, "document.querySelector('"+in+"').offsetHeight"); high > 1500 {
			t.Errorf("cell %d is %d px high", cell, high)
		}
		if cell == 2 {
			size := eval[int](p, "fetch(document.querySelector('"+in+".unfolded a[download]').href).then((r) => r.text()).then((text) => text.split('\\n').length)")
			if size != 300_001 {
				t.Errorf("the file has %d lines", size)
			}
		}
		p.click(in + ".refold")
		p.until("document.activeElement === document.querySelector('" + in + ".unfold')")
		p.until(inSight(in + ".unfold"))
	}
}

// Outputs are folded and shown again by what can be seen and touched, and stay folded as their cell goes on.
func TestOutputsAreFoldedByButtons(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	p := s.signIn(t)
	p.do(chromedp.EmulateViewport(390, 844))
	s.start(t, c, "folded", "import os, time\nprint('here', flush=True)\n"+untilLetGo)
	p.open("/s/folded")
	p.untilText("#c1 .outputs", "here")
	const toggle = "#c1 .cell-head .fold-outputs"
	p.click(toggle)
	p.until("!document.querySelector('#c1 .outputs').checkVisibility() && document.querySelector('" + toggle + "').ariaExpanded === 'false'")
	letGo(t, c, "folded")
	p.untilText("#c1 .cell-status", "ok") // with another head
	p.until("!document.querySelector('#c1 .outputs').checkVisibility() && document.querySelector('" + toggle + "').ariaExpanded === 'false'")
	p.click("#c1 .show-outputs")
	p.until("document.querySelector('#c1 .outputs').checkVisibility() && document.querySelector('" + toggle + "').ariaExpanded === 'true'")
	p.until(focused(toggle))
	p.press("o")
	p.until(inSight("#c1 .show-outputs"))
	s.python(t, c, "folded", "None")
	p.until("document.querySelector('#c2 .cell-status')?.innerText === 'ok' && !document.querySelector('#c2 .fold-outputs').checkVisibility()")
}

// Who reads elsewhere sees how much has come meanwhile, until the end is in sight again.
func TestNewsWhileReading(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for range 3 {
		s.python(t, c, "news", tall)
	}
	p := s.signIn(t)
	p.open("/s/news")
	p.until("document.querySelector('#follow').ariaPressed === 'true' && document.documentElement.scrollHeight - innerHeight - scrollY < 2 && scrollY > 500")
	s.python(t, c, "news", "'seen'")
	p.untilText("#c4 .outputs", "seen")
	if text := p.text("#follow"); text != "Follow" {
		t.Errorf("the button says %q", text)
	}
	p.press("gg")
	p.until("document.querySelector('#follow').ariaPressed === 'false'")
	s.python(t, c, "news", "print('one')\n'two'")
	p.until("/^Follow · [12] new$/.test(document.querySelector('#follow').innerText)") // a cell that comes with its outputs is one
	s.python(t, c, "news", "None")
	p.until("/^Follow · [23] new$/.test(document.querySelector('#follow').innerText)")
	p.click("#follow")
	p.until("document.querySelector('#follow').innerText === 'Follow' && document.querySelector('#follow').ariaPressed === 'true'")
}

// On a phone the server's page is as wide as the window, and says in plain words how sessions are.
func TestServerOnAPhone(t *testing.T) {
	s := shared(t)
	s.python(t, s.mcp(t), "listed", "1")
	p := s.signIn(t)
	p.do(chromedp.EmulateViewport(390, 844))
	p.open("/server")
	p.untilText(".wide", "listed")
	wide := eval[[]string](p, "[...document.querySelectorAll('html, .scrolls')].filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.ariaLabel ?? box.localName)")
	if len(wide) > 0 {
		t.Errorf("these are wider than the window: %q", wide)
	}
	if text := p.text("#server .tile:nth-child(2)"); strings.Contains(text, "culled") || !strings.Contains(text, "stopped") {
		t.Errorf("of sessions it says %q", text)
	}
}
