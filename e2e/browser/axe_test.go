package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"cellblock/e2e/rig"
)

// finding is a rule of axe that a page breaks.
type finding struct {
	Rule   string   `json:"rule"`
	Impact string   `json:"impact"`
	Where  []string `json:"where"`
}

// Every page can be used by who does not see it, or has no mouse, as far as axe can tell: WCAG 2.2 AA, light and dark.
func TestAccessible(t *testing.T) {
	axe, err := os.ReadFile(rig.NeedNode(t).Package("axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "seen", "print('hello')\n1/0")
	s.python(t, c, "seen", everyColour)
	p := s.signIn(t)
	stranger := s.stranger(t)
	stranger.expects("401")
	for _, scheme := range []string{"light", "dark"} {
		for _, at := range []struct {
			tab  *tab
			path string
		}{{p, "/"}, {p, "/s/seen"}, {p, "/server"}, {stranger, "/"}} {
			at.tab.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
			at.tab.open(at.path)
			at.tab.until("document.readyState === 'complete'")
			at.tab.accessible(at.path+", "+scheme, string(axe))
		}
		p.accessibleOnAPhone(scheme, string(axe))
	}
}

// everyColour has text in all colours of terminals, on all grounds, also inverse.
const everyColour = `for ground in [49, *range(40, 48)]:
    print(*(f'\x1b[{ink};{ground}{inverse}m{ink} on {ground}\x1b[m' for ink in [39, *range(30, 38), 90] for inverse in ['', ';7']))`

// accessibleOnAPhone looks at each part of a session's panel, which lies open over the cells there.
func (p *tab) accessibleOnAPhone(scheme, axe string) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(390, 844))
	p.open("/s/seen")
	p.until("document.querySelector('#panel-fold')?.getAttribute('aria-expanded') === 'false'")
	p.until("document.documentElement.scrollHeight - innerHeight - scrollY < 2 && scrollY > 500") // else the tabs go from under the mouse
	for _, part := range []string{"variables", "files", "resources", "details"} {
		p.click("#tab-" + part)
		p.until("document.querySelector('#tab-" + part + "').getAttribute('aria-selected') === 'true'")
		p.until(inSight("#panel-body"))
		p.accessible(part+" on a phone, "+scheme, axe)
	}
	p.do(chromedp.EmulateViewport(1280, 900))
}

// accessible has the page looked at, and reports what is wrong with it.
func (p *tab) accessible(what, axe string) {
	p.t.Helper()
	for _, f := range p.axe(axe) {
		p.t.Errorf("%s: %s (%s) at %s", what, f.Rule, f.Impact, strings.Join(f.Where, "; "))
	}
}

// axe has the page looked at, and returns what is wrong with it.
func (p *tab) axe(script string) []finding {
	p.t.Helper()
	return eval[[]finding](p, fmt.Sprintf(`(async () => {
  if (!globalThis.axe) (0, %s)();
  const {violations} = await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], iframes: false});
  return violations.map((v) => ({rule: v.id, impact: v.impact ?? '', where: v.nodes.slice(0, 5).map((n) => n.target.join(' '))}));
})()`, "function () {"+script+"}"))
}
