package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
	"cellblock/web/viewer/live"
)

// Cells and outputs are their owner's, for who may read sessions.
func TestWhoSeesCells(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a\npng")
	for _, path := range []string{
		"/s/s", "/s/s/cells?from=1&to=50", "/s/s/cells/1", "/s/s/cells/1/items/0", "/s/s/cells/1/text", "/s/s/cells/1/outputs/1?mime=image/png", "/s/s/cells/1/outputs/1/frame",
	} {
		p.signIn("ann", all...).want(200, "GET", path, nil)
		p.signIn("ann", "python:execute").want(403, "GET", path, nil)
		(&browser{pages: p}).want(401, "GET", path, nil)
		if got := p.signIn("bob", all...).send("GET", path, nil); got.Code != 404 || strings.Contains(got.Body.String(), "print a") {
			t.Errorf("another owner gets %d from %s: %s", got.Code, path, got.Body)
		}
		if got := p.signIn("ann", all...).send("POST", path, nil); got.Code != 405 {
			t.Errorf("POST %s: %d", path, got.Code)
		}
	}
}

// All that a cell has said can be had as text, however much of it a page shows.
func TestTextOfACell(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print first\npng\nresult <b>\nerror Wrong here")
	b := p.signIn("ann", all...)
	got := b.send("GET", "/s/s/cells/1/text", nil)
	if text := got.Body.String(); !strings.HasPrefix(text, "first\n") || !strings.Contains(text, "<b>\n") || !strings.Contains(text, "Wrong") {
		t.Errorf("the text is %q", text)
	}
	if h := got.Header(); h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("Content-Disposition") != "attachment; filename=s-1.txt" {
		t.Errorf("it is sent as %v", h)
	}
	for text, out := range map[string]kernels.Output{
		"Who? ": asks("Who? ", false), "Ada\n": answers("Ada", false), "········\n": answers("", true),
		"\n… lost …\n":  {Kind: kernels.OutputNotice, Notice: &kernels.Notice{Incomplete: "lost"}},
		"Name: value\n": {Kind: kernels.OutputError, Error: &kernels.ExecError{Name: "Name", Value: "value"}},
		"":              {Kind: kernels.OutputDisplay, Data: map[string]json.RawMessage{"image/png": json.RawMessage(`"AAAA"`), "text/plain": json.RawMessage(`"<Figure size 640x480 with 1 Axes>"`)}},
		"**b**\n":       {Kind: kernels.OutputDisplay, Data: map[string]json.RawMessage{"text/markdown": json.RawMessage(`"**b**"`), "text/plain": json.RawMessage(`"<IPython.core.display.Markdown object>"`)}},
		"x**2\n":        {Kind: kernels.OutputResult, Data: map[string]json.RawMessage{"text/latex": json.RawMessage(`"$x^2$"`), "text/plain": json.RawMessage(`"x**2"`)}},
	} {
		if got := textOf(out); got != text {
			t.Errorf("%+v is %q", out, got)
		}
	}
	b.want(404, "GET", "/s/s/cells/9/text", nil)
}

func TestCellsInBlocks(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	for n := range 62 {
		p.ran("ann", "s", fmt.Sprintf("print <b>%d</b>", n+1))
	}
	page := b.want(200, "GET", "/s/s", nil)
	for want, times := range map[string]int{`class="block"`: 2, `data-filled`: 1, `class="cell"`: 12, `data-after="63"`: 1, `id="c62"`: 1, `id="c50"`: 0} {
		if got := strings.Count(page, want); got != times {
			t.Errorf("%d times %s in the page, want %d", got, want, times)
		}
	}
	block := b.want(200, "GET", "/s/s/cells?from=1&to=50", nil)
	if strings.Count(block, `\"cell\"`) != 50 || !strings.Contains(block, `&lt;b&gt;1&lt;`) && !strings.Contains(block, `\u0026lt;b\u0026gt;1`) {
		t.Errorf("a block is %.500s", block)
	}
	for _, query := range []string{"", "?from=0&to=5", "?from=5&to=1", "?from=1&to=1000", "?from=x&to=y", "?from=99999999999999999999&to=5"} {
		b.want(400, "GET", "/s/s/cells"+query, nil)
	}
	b.want(200, "GET", "/s/s/cells?from=500&to=520", nil)
	b.want(404, "GET", "/s/s/cells/500/items/0", nil)
	b.want(404, "GET", "/s/s/cells/1/items/none", nil)
}

func TestOutputsAsTheyAre(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	p.ran("ann", "s", "png\nresult x")
	check := func(w *httptest.ResponseRecorder, headers map[string]string) {
		t.Helper()
		if w.Code != 200 {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		for name, want := range headers {
			if got := w.Header().Get(name); !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	picture := b.send("GET", "/s/s/cells/1/outputs/0?mime=image/png", nil)
	check(picture, map[string]string{"Content-Type": "image/png", "Content-Disposition": `inline; filename=s-1-0.png`, "Content-Security-Policy": "sandbox"})
	if !strings.HasPrefix(picture.Body.String(), "\x89PNG") {
		t.Errorf("it is no PNG: %q", picture.Body)
	}
	check(b.send("GET", "/s/s/cells/1/outputs/1?mime=text/plain", nil), map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": "attachment", "Content-Security-Policy": "sandbox"})
	check(b.send("GET", "/s/s/cells/1/outputs/1/frame", nil), map[string]string{
		"Content-Security-Policy": "sandbox allow-scripts; default-src 'none'", "Connection-Allowlist": "()", "X-Frame-Options": ""})
	for _, path := range []string{"/s/s/cells/1/outputs/0?mime=text/html", "/s/s/cells/1/outputs/7?mime=image/png", "/s/s/cells/9/outputs/0?mime=image/png"} {
		b.want(404, "GET", path, nil)
	}
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8787/s/s/cells/1/outputs/1/frame", nil)
	r.AddCookie(&http.Cookie{Name: p.viewer.cookie, Value: b.secret})
	r.Header.Set("Sec-Fetch-Dest", "document")
	w := httptest.NewRecorder()
	if p.handler.ServeHTTP(w, r); w.Code != 403 {
		t.Errorf("a frame's document alone: %d", w.Code)
	}
}

// A cell that runs a script is called so, wherever it is shown, whatever the script's name is; its code is nobody's to edit.
func TestScripts(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	for i, file := range []string{"<b>.py", "a\nb.py"} {
		if _, err := p.sessions.Execute(t.Context(), b.who.owner, sessions.Request{SessionID: "s", Language: "python", Code: "print wrapper", File: file, Caller: "model"}); err != nil {
			t.Fatal(err)
		}
		b.ended("s", i+1)
	}
	for _, want := range []string{`<pre class="code script" tabindex="0">run &#39;&lt;b&gt;.py&#39;</pre>`, `run $&#39;a\nb.py&#39;`} {
		if page := b.want(200, "GET", "/s/s", nil); !strings.Contains(page, want) || strings.Contains(page, "print wrapper") {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if list := b.want(200, "GET", "/", nil); !strings.Contains(list, `run $&#39;a\nb.py&#39;`) {
		t.Errorf("the list of sessions is\n%s", list)
	}
	if earlier := b.want(200, "GET", "/s/s/earlier", nil); strings.TrimSpace(earlier) != "[]" {
		t.Errorf("to be edited there is %s", earlier)
	}
}

// followed page is what a page makes of what the topic tells.
type toldPage struct {
	cells, heads map[int]string
	items        map[int][]keyedHTML
	displays     []displayEvent
	cursor       string
	told         []string
}

var errEnough = errors.New("enough")

func (p *toldPage) apply(e live.Event) {
	if e.Cursor != "" {
		p.cursor = e.Cursor
	}
	switch data := e.Data.(type) {
	case cellEvent:
		p.cells[data.Number], p.heads[data.Number], p.items[data.Number] = data.HTML, data.HTML, nil
		p.told = append(p.told, fmt.Sprint("cell ", data.Number))
	case headEvent:
		p.heads[data.Number] = data.HTML
	case itemsEvent:
		if data.Cleared {
			p.items[data.Number] = nil
		}
		for _, it := range data.Items {
			p.put(data.Number, it)
		}
	case displayEvent:
		p.displays = append(p.displays, data)
	}
}

func (p *toldPage) put(n int, it keyedHTML) {
	for i, old := range p.items[n] {
		if old.Key == it.Key {
			p.items[n][i] = it
			return
		}
	}
	p.items[n] = append(p.items[n], it)
}

// shows tells whether a cell shows a text, once.
func (p *toldPage) shows(n int, text string) bool {
	all := p.cells[n]
	for _, it := range p.items[n] {
		all += it.HTML
	}
	return strings.Count(all, text) == 1
}

// hear follows a session's cells from where the page stands until it has heard enough.
func (b *browser) hear(id string, page *toldPage, enough func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	err := b.viewer.cellsTopic(b.who, id)(ctx, page.cursor, func(e live.Event) error {
		if page.apply(e); enough() {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		b.t.Fatalf("it was not heard: %v; the page is %+v", err, page)
	}
}

// A page is told of a cell as it runs; one that comes back is told what it has missed, and nothing that it had of cells that ended.
func TestCellsAreTold(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	page := &toldPage{cells: map[int]string{}, heads: map[int]string{}, items: map[int][]keyedHTML{}}
	p.ran("ann", "s", "print first")
	b.hear("s", page, func() bool { return page.cursor == "2" })
	if !page.shows(1, "first\n") || !strings.Contains(page.heads[1], ">ok<") {
		t.Errorf("the first cell is %+v", page)
	}
	run := func(code string) *sessions.Execution {
		e, err := p.sessions.Execute(t.Context(), b.who.owner, sessions.Request{SessionID: "s", Language: "python", Code: code})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	second := run("print half\nsleep 10m")
	b.hear("s", page, func() bool { return page.shows(2, "half\n") && strings.Contains(page.heads[2], "running") })
	third := run("print third\nerror E oh")
	if _, err := p.sessions.Interrupt(t.Context(), b.who.owner, "s"); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*sessions.Execution{second, third} {
		if _, err := e.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	page.told = nil
	b.hear("s", page, func() bool { return page.cursor == "4" })
	if !page.shows(2, "half\n") || !strings.Contains(page.heads[2], "interrupted") || !page.shows(3, "third\n") || !strings.Contains(page.heads[3], ">error<") {
		t.Errorf("after it came back the page is %+v", page)
	}
	if got := strings.Join(page.told, ", "); got != "cell 2, cell 3" {
		t.Errorf("it was told of %s", got)
	}
	run("late 1ms afterwards")
	b.hear("s", page, func() bool { return page.shows(4, "afterwards\n") })
}

// What a cell makes of another's display is told, also of a cell that had ended before it was told of: of each display what it is last.
func TestDisplaysOfOthersAreTold(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	p.ran("ann", "s", "png")
	p.ran("ann", "s", "update fig in between\nupdate fig at last")
	page := &toldPage{cells: map[int]string{}, heads: map[int]string{}, items: map[int][]keyedHTML{}, cursor: "2"}
	b.hear("s", page, func() bool { return page.cursor == "3" })
	if len(page.displays) != 1 || page.displays[0].Display != displayName(1, "fig") || !strings.Contains(page.displays[0].HTML, "at last") {
		t.Errorf("of displays is told %+v", page.displays)
	}
}

// Of a cell that ended long before the page was opened, what its threads print is told.
func TestLateOutputIsTold(t *testing.T) {
	p := newPages(t, func(c *sessions.Config) { c.Store = storetest.NewMemory() })
	b := p.signIn("ann", all...)
	lines := ""
	for i := range 600 { // for a minute, so that some of it comes after the page was opened
		lines += fmt.Sprintf("late %dms afterwards\n", 100*i)
	}
	p.ran("ann", "s", lines)
	for range keptCells - 1 {
		p.ran("ann", "s", "print x")
	}
	page := &toldPage{cells: map[int]string{}, heads: map[int]string{}, items: map[int][]keyedHTML{}, cursor: fmt.Sprint(keptCells + 1)}
	b.hear("s", page, func() bool { return strings.Contains(page.cells[1], "afterwards") || len(page.items[1]) > 0 })
}

// Where a page is far behind, it is told how many cells there are and hears of the last.
func TestFarBehind(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	for range maxBehind + 20 {
		p.ran("ann", "s", "1+1")
	}
	page := &toldPage{cells: map[int]string{}, heads: map[int]string{}, items: map[int][]keyedHTML{}, cursor: "1"}
	b.hear("s", page, func() bool { return page.cursor == fmt.Sprint(maxBehind+21) })
	if len(page.told) > maxBehind+1 || page.cells[maxBehind+20] == "" {
		t.Errorf("it was told of %d cells", len(page.told))
	}
}
