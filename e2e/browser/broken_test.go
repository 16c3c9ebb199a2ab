package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"cellblock/e2e/rig"
)

// A picture that cannot be shown is told to be one, and what there is of it can be had; no browser's sign stands for it. So it is
// whether the cell comes while the page is open, or was there before.
func TestBrokenPictures(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	p := s.signIn(t)
	p.expects("400")
	s.python(t, c, "broken", "'the first cell'")
	p.open("/s/broken")
	p.untilText("#link-state", "")
	s.python(t, c, "broken", brokenPictures+"\nopen('cut.png', 'wb').write(base64.b64decode(whole)[:30])")
	const told = `[...document.querySelectorAll('#c2 .item.display')].map((item) => item.innerText.replace(/\s+/g, ' ').trim()).join('|')`
	const want = "This picture cannot be shown: its data is cut off or damaged. Download|This picture cannot be shown: its data is not base64.|" +
		"This picture cannot be shown: its data is cut off or damaged. Download|Download"
	for _, when := range []string{"come", "there before"} {
		if when == "there before" {
			p.open("/s/broken")
		}
		p.until(told + ".startsWith(" + quoted(want) + ") && document.querySelectorAll('#c2 .picture img').length === 1")
	}
	p.click("#tab-files")
	p.click("[data-preview='cut.png']")
	p.untilText("#preview .shown", "This picture cannot be shown")
}

// A good picture that could not be had for a while is asked for again, and is shown.
func TestPicturesThatComeLater(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "later", brokenPictures)
	p := s.signIn(t)
	p.expects("400")
	p.open("/s/later")
	const image = "document.querySelector('#c1 .picture img')"
	p.until("document.querySelectorAll('#c1 .broken').length === 2 && " + image + "?.complete && " + image + ".naturalWidth === 300")
	eval[bool](p, `(() => {
		const ask = fetch, image = `+image+`;
		globalThis.refused = [];
		globalThis.loads = 0;
		globalThis.fetch = async (path, options) => {
			if (path !== image.src) return ask(path, options);
			const status = refused.shift();
			return status ? Response.json({message: 'Not now.'}, {status}) : ask(path, options);
		};
		image.addEventListener('load', () => loads++);
		globalThis.fails = (status) => { refused.push(status); image.dispatchEvent(new Event('error')); };
		return true;
	})()`)
	loaded := 0
	shown := func() {
		t.Helper()
		loaded++
		p.until(fmt.Sprintf("loads === %d && document.querySelectorAll('#c1 .broken').length === 2 && %s?.naturalWidth === 300", loaded, image))
	}
	for _, status := range []int{503, 429} { // a server that starts, or is busy
		eval[bool](p, fmt.Sprintf("(fails(%d), true)", status))
		shown()
	}
	eval[bool](p, "(document.querySelector('meta[name=csrf]').dataset.left = '0', fails(401), true)")
	p.untilText("dialog[open]", "Your sign-in has ended")
	eval[bool](p, "(new BroadcastChannel('cellblock').postMessage('signed in'), true)")
	shown()
	eval[bool](p, "(fails(0), true)") // only the picture's own request failed
	shown()
}

// A cell that waited when its server ended is run by a click, and so is a script's.
func TestRunItAgain(t *testing.T) {
	needs(t)
	i := rig.Install(t, rig.RuntimeFlags("local")...)
	s := siteOf(i.Serve(t))
	c := s.mcp(t)
	if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "cut", "path": "say.py", "content": "print('the script ' + 'ran')"}, nil); err != nil {
		t.Fatal(err)
	}
	s.python(t, c, "cut", "'warm'")
	s.begin(t, c, "execute_python", map[string]any{"code": "import os, time\nwhile not os.path.exists('stop'): time.sleep(0.02)"})
	s.begin(t, c, "execute_python", map[string]any{"code": "print('the cell ' + 'ran')"})
	s.begin(t, c, "execute_file", map[string]any{"path": "say.py"})
	p := s.signIn(t)
	p.expects("ERR_", "Failed to fetch")
	p.open("/s/cut")
	p.untilText("#c2 .cell-status", "running")
	p.untilText("#c4 .cell-status", "queued")
	c.Close()
	s.Kill(t)
	s = siteOf(i.Serve(t))
	p = s.signIn(t)
	p.open("/s/cut")
	p.until("document.querySelectorAll('#cells .again').length === 2")
	if text := p.text("#c4"); !strings.Contains(text, "restarted before this cell ran. Run it again") {
		t.Errorf("the script's cell says %s", text)
	}
	if _, err := s.mcp(t).Call(t.Context(), "write_file", map[string]any{"session_id": "cut", "path": "stop", "content": ""}, nil); err != nil {
		t.Fatal(err)
	}
	for n, said := range []string{"the cell ran", "the script ran"} {
		p.click([]string{"#c3 .again", "#c4 .again"}[n])
		p.untilText([]string{"#c5 .outputs", "#c6 .outputs"}[n], said)
	}
}

// begin has a tool of a model begin a cell in the session "cut", and waits for nothing.
func (s *site) begin(t *testing.T, c *rig.Client, tool string, args map[string]any) {
	t.Helper()
	args["session_id"], args["wait_seconds"] = "cut", 0
	if _, err := c.Call(t.Context(), tool, args, nil); err != nil {
		t.Fatal(err)
	}
}

// Where it is not known which images there are, that is said, one can be named, and it can be asked again.
func TestImagesThatAreNotKnown(t *testing.T) {
	p := shared(t).signIn(t)
	p.until("document.getElementById('sessions')")
	eval[bool](p, `(() => {
		const ask = fetch;
		globalThis.fails = true;
		globalThis.fetch = async (path, options) => {
			if (path !== '/images') return ask(path, options);
			return fails ? Response.json({message: 'The engine cannot be asked now.', hint: ''}, {status: 503}) : Response.json({python: [{name: 'ml', about: 'small'}]});
		};
		return true;
	})()`)
	p.click("#new")
	p.untilText("dialog [role=status]", "Which images there are is not known. The engine cannot be asked now.")
	p.until("document.querySelector('dialog [name=image]').checkVisibility()")
	p.do(chromedp.SendKeys("dialog [name=image]", "mine:1", chromedp.ByQuery))
	eval[bool](p, "document.querySelector('dialog [role=status] button').className = 'first'; true")
	p.click("dialog [role=status] button")
	p.until("document.querySelector('dialog [role=status] button:not(.first)')") // it goes when that has failed, too
	eval[bool](p, "(globalThis.fails = false, true)")
	p.click("dialog [role=status] button")
	p.until("document.querySelector('dialog [data-images]').checkVisibility() && !document.querySelector('dialog [role=status]').checkVisibility()")
	p.untilText("dialog [data-images]", "ml (small)")
	if named := eval[string](p, "document.querySelector('dialog [name=image]').value"); named != "mine:1" {
		t.Errorf("what was named is %q", named)
	}
}
