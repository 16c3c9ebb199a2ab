package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// picturesDir names the folder that TestPictures puts its pictures into; without it there are none.
const picturesDir = "CELLBLOCK_PICTURES"

// picturesOnly names those that are wanted, if not all.
const picturesOnly = "CELLBLOCK_PICTURES_ONLY"

// wanted tells whether somebody wants a picture.
func wanted(name string) bool {
	only := os.Getenv(picturesOnly)
	return os.Getenv(picturesDir) != "" && (only == "" || slices.Contains(strings.Fields(only), name))
}

// looks are how each page is taken.
var looks = []struct {
	name, scheme  string
	width, height int64
}{
	{"light-desktop", "light", 1280, 860}, {"dark-desktop", "dark", 1280, 860},
	{"light-phone", "light", 390, 844}, {"dark-phone", "dark", 390, 844},
}

// TestPictures takes every page, light and dark, at the width of a desk and of a phone.
func TestPictures(t *testing.T) {
	dir := os.Getenv(picturesDir)
	if dir == "" {
		return // they are for people to look at, and test nothing
	}
	s := shared(t)
	c := s.mcp(t)
	for _, page := range demo {
		for _, code := range page.cells {
			s.python(t, c, page.session, code)
		}
	}
	if _, err := c.Call(t.Context(), "execute_python", map[string]any{
		"code": "import time\nfor epoch in range(600):\n    print('epoch', epoch)\n    time.sleep(1)", "session_id": "train-model", "wait_seconds": 0,
	}, nil); err != nil {
		t.Fatal(err)
	}
	p := s.signIn(t)
	p.untilText("tr[data-id=train-model] .usage", "%")
	stranger := s.stranger(t)
	stranger.expects("401")
	for _, look := range looks {
		for _, at := range []struct {
			tab        *tab
			name, path string
		}{{p, "sessions", "/"}, {p, "session", "/s/sales-analysis"}, {p, "server", "/server"}, {stranger, "signin", "/"}} {
			if name := at.name + "-" + look.name; wanted(name) {
				at.tab.take(filepath.Join(dir, name+".png"), at.path, look.scheme, look.width, look.height)
			}
		}
	}
}

// demo is what the pictures show.
var demo = []struct {
	session string
	cells   []string
}{
	{"sales-analysis", []string{
		"import pandas as pd\nimport numpy as np\n\nrng = np.random.default_rng(7)\nsales = pd.DataFrame({\n    'month': pd.date_range('2025-01-01', periods=12, freq='MS'),\n    'north': rng.integers(80, 140, 12),\n    'south': rng.integers(60, 160, 12),\n})\nsales.head()",
		"import matplotlib.pyplot as plt\n\nplt.figure(figsize=(7, 3))\nplt.plot(sales.month, sales.north, label='north')\nplt.plot(sales.month, sales.south, label='south')\nplt.legend()\nplt.title('Sales by region')\nplt.show()",
		"sales.set_index('month').resample('QS').sum()",
		"sales.groupby('region').sum()",
	}},
	{"train-model", []string{"weights = [0.5] * 1000"}},
	{"quick-look", []string{"print('hello')"}},
}

// take takes a picture of a page.
func (p *tab) take(file, path, scheme string, width, height int64) {
	p.t.Helper()
	var picture []byte
	p.do(
		chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(p.site.base+path), chromedp.WaitVisible("#main"),
	)
	if path == "/" && p.count("#sessions") > 0 {
		p.untilText("tr[data-id=train-model] .usage", "%")
	}
	if strings.HasPrefix(path, "/s/") && width > height {
		p.untilText("#panel", "sales")
	}
	p.until("document.readyState === 'complete' && [...document.images].every((image) => image.complete || image.loading === 'lazy')")
	p.do(chromedp.ActionFunc(func(ctx context.Context) error { return chromedp.CaptureScreenshot(&picture).Do(ctx) }))
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		p.t.Fatal(fmt.Errorf("the picture is lost: %w", err))
	}
}
