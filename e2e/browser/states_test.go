package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"cellblock/e2e/rig"
)

// TestPicturesOfStates takes what pages show now and then: what is asked, unfolded, lost, empty or wrong.
func TestPicturesOfStates(t *testing.T) {
	if os.Getenv(picturesDir) == "" || os.Getenv(picturesOnly) != "" {
		return // they are for people to look at, and test nothing
	}
	s := shared(t)
	p := s.signIn(t)
	p.expects("400", "404", "500")
	p.untilText("#none", "No sessions yet")
	p.snap("no-sessions")
	c := s.mcp(t)
	for id, cells := range states {
		for _, code := range cells {
			s.python(t, c, id, code)
		}
	}
	for _, at := range []struct {
		name, session string
		reach         func()
	}{
		{"error", "errors", func() { p.unfoldAll("#cells .error details") }},
		{"long", "wordy", func() { p.until("document.querySelector('.unfold')") }},
		{"unfolded", "wordy", func() {
			p.until("document.querySelector('.unfold')")
			p.do(chromedp.Evaluate("document.querySelector('.unfold').click()", nil))
			p.until("document.querySelector('.unfolded')")
		}},
		{"broken", "broken", func() { p.until("[...document.images].every(({complete}) => complete)") }},
		{"variables", "many", func() { p.untilText("#panel-variables", "mine") }},
		{"asks", "asking", func() {
			p.do(chromedp.Focus("#code", chromedp.ByQuery))
			p.write("import getpass\nname = input('Who? '); word = getpass.getpass('Password for the database: ')")
			p.key("Enter", shift)
			p.untilText("#prompt-text", "Who?")
		}},
		{"asked", "asking", func() {
			p.until("document.activeElement.id === 'prompt-line'")
			p.write("Ada")
			p.key("Enter")
			p.untilText("#prompt-text", "Password")
		}},
		{"files", "files", func() {
			p.click("#tab-files")
			p.untilText("#folder", "sales.csv")
		}},
		{"csv", "files", func() {
			p.click("[data-preview='sales.csv']")
			p.until("document.querySelector('#preview .sheet')")
		}},
		{"image", "files", func() {
			p.key("Escape")
			p.click("[data-preview='plot.png']")
			p.until("document.querySelector('#preview img')?.complete")
		}},
		{"resources", "files", func() {
			p.key("Escape")
			p.click("#tab-resources")
			p.until("document.querySelector('#memory-now').textContent")
		}},
		{"details", "files", func() {
			p.click("#tab-details")
			p.untilText("#details", "Language")
		}},
		{"completion", "files", func() {
			p.click("#tab-variables")
			p.do(chromedp.Focus("#code", chromedp.ByQuery))
			p.write("import os; os.pa")
			p.key("Tab")
			p.until("!document.querySelector('#matches').hidden")
		}},
	} {
		if where := "/s/" + at.session; eval[string](p, "location.pathname") != where {
			p.open(where)
			p.until("document.querySelector('#panel-fold')?.getAttribute('aria-expanded')")
		}
		at.reach()
		p.snap(at.name)
	}
	p.snapRestoration(c)
	p.snapNewSession()
	line, far := s.signInByLine(t)
	far.open("/s/errors")
	far.untilText("#state", "idle")
	line.cut()
	far.untilText("#link-state", "Reconnecting")
	far.snap("unheard")
}

// states are the sessions that are shown.
var states = map[string][]string{
	"errors": {"import json\ndef load(text):\n    return json.loads(text)\n\ntry:\n    load('{')\nexcept ValueError as e:\n    raise RuntimeError('the settings cannot be read') from e", "import sys\nprint('a warning', file=sys.stderr)\nprint('and then')"},
	"wordy":  {"for i in range(2000): print(f'epoch {i:4}  loss {1 / (i + 1):.5f}  accuracy {1 - 1 / (i + 2):.4f}')"},
	"broken": {brokenPictures},
	"many":   {"mine = [1, 2, 3]", "from numpy import *\nfrom math import *", "yours = {'a': 1}"},
	"asking": {"1 + 1"},
	"files": {"import matplotlib.pyplot as plt\nplt.plot([1, 4, 2]); plt.savefig('plot.png'); plt.close()\nimport os\nos.makedirs('data', exist_ok=True)\n" +
		"open('sales.csv', 'w').write('month,region,units,note\\n' + ''.join(f'2025-{m:02},north,{m * 17},\"all, of it\"\\n' for m in range(1, 13)))\n" +
		"open('a-file-with-a-very-long-name-that-does-not-fit-into-the-panel.txt', 'w').write('x')"},
	"lost": {"import os, time\nwhile os.path.exists('hold'): time.sleep(0.02)", "answer = 42", "open('hold', 'w').close()"},
}

// brokenPictures shows pictures that are cut off, and no pictures.
const brokenPictures = `import base64, struct, zlib
from IPython.display import display
def png(w, h):
    chunk = lambda kind, data: struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', w, h, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress((b'\0' + b'\x20\x60\xc0' * w) * h)) + chunk(b'IEND', b'')
def show(text, mime='image/png'):
    display({mime: text}, raw=True)
whole = base64.b64encode(png(300, 200)).decode()
show(whole[:40])
show(whole + '!')
show('<svg xmlns="http://www.w3.org/2000/svg"><rect width="9"', 'image/svg+xml')
show(whole)`

// unfoldAll opens everything of a kind.
func (p *tab) unfoldAll(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%s)", quoted(selector)))
	eval[bool](p, fmt.Sprintf("[...document.querySelectorAll(%s)].forEach((one) => { one.open = true; }) ?? true", quoted(selector)))
}

// snapRestoration takes a session whose cells run again, and how that ended.
func (p *tab) snapRestoration(c *rig.Client) {
	p.t.Helper()
	if _, err := c.Call(p.t.Context(), "restart_session", map[string]any{"session_id": "lost"}, nil); err != nil {
		p.t.Fatal(err)
	}
	p.open("/s/lost")
	p.until("document.querySelector('#restore')?.hidden === false")
	p.snap("lost")
	p.click("#restore")
	p.untilText("dialog[open] h2", "Run the earlier cells again?")
	p.snap("restore")
	p.click("dialog[open] button.danger")
	p.untilText("#restore", "Restoring, 0 of")
	p.snap("restoring")
	if _, err := c.Call(p.t.Context(), "delete_file", map[string]any{"session_id": "lost", "path": "hold"}, nil); err != nil {
		p.t.Fatal(err)
	}
	p.until("document.querySelector('#restore').hidden && document.querySelector('.toast')")
	p.snap("restored")
}

// snapNewSession takes the form of a new session: with images to choose from, where it is refused, and where the images are not known.
func (p *tab) snapNewSession() {
	p.t.Helper()
	p.open("/")
	p.until("document.getElementById('sessions')")
	eval[bool](p, `(() => {
		const ask = fetch;
		globalThis.fetch = async (path, options) => {
			if (path === '/images' && globalThis.fails) return Response.json({message: 'The engine cannot be asked now.', hint: 'Try again in a minute.'}, {status: 503});
			if (path === '/images') return Response.json({python: [{name: 'ml', about: 'with pip:polars, pip:scikit-learn, 1.4 GiB'}]});
			return ask(path, options);
		};
		return true;
	})()`)
	for _, fails := range []bool{false, true} {
		eval[bool](p, fmt.Sprintf("(globalThis.fails = %v, true)", fails))
		p.click("#new")
		if fails {
			p.untilText("dialog .problem[role=status]", "is not known")
		} else {
			p.until("document.querySelector('dialog [data-images]')?.checkVisibility()")
			p.do(chromedp.SendKeys("dialog [name=session_id]", "..", chromedp.ByQuery))
			p.click("dialog button.primary")
			p.untilText("dialog [role=alert]", "is not allowed")
		}
		p.snap(fmt.Sprintf("new-session-%v", map[bool]string{false: "refused", true: "no-images"}[fails]))
		p.key("Escape")
		p.until("!document.querySelector('dialog[open]')")
	}
}

// ofPanel are the states that the panel shows, which a phone has folded at first.
var ofPanel = []string{"variables", "files", "resources", "details"}

// snap takes the page as it is, as each of the looks.
func (p *tab) snap(name string) {
	p.t.Helper()
	for _, look := range looks {
		var picture []byte
		p.do(
			chromedp.EmulateViewport(look.width, look.height),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}),
			chromedp.Evaluate(fmt.Sprintf("if (%v && innerWidth < 1000) document.querySelector('#panel-fold[aria-expanded=false]')?.click()", slices.Contains(ofPanel, name)), nil),
			chromedp.ActionFunc(func(ctx context.Context) error { return chromedp.CaptureScreenshot(&picture).Do(ctx) }),
		)
		if err := os.WriteFile(filepath.Join(os.Getenv(picturesDir), "state-"+name+"-"+look.name+".png"), picture, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	p.do(chromedp.EmulateViewport(1280, 900))
}
