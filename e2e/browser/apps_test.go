package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"cellblock/e2e/rig"
)

// appPolicy is the policy that MCP Apps have a host make for a page that names no domains.
const appPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; media-src 'self' data:; frame-src 'self'; object-src 'none'; base-uri 'self'"

// conversation is a tab with a host of MCP Apps in it, the one of ext-apps, which calls the server with MCP's own client.
type conversation struct {
	*tab
	looks *atomic.Int64 // that its pages have had at cells
}

// converse opens one, by a revision of MCP; empty: those with a handshake. Scopes are all where none is named.
func (s *site) converse(t *testing.T, revision string, scopes ...string) conversation {
	t.Helper()
	node := rig.NeedNode(t)
	args := []string{"--subject", subject(t)}
	if len(scopes) > 0 {
		args = append(args, "--scopes", strings.Join(scopes, ","))
	}
	token := s.Token(t, args...)
	to, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	c := conversation{looks: &atomic.Int64{}}
	mux := http.NewServeMux()
	mux.Handle("GET /npm/", http.StripPrefix("/npm/", http.FileServer(http.Dir(node.Package()))))
	mux.HandleFunc("GET /host", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/apps/host.html") })
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Set("Authorization", "Bearer "+token)
		r.Out.Header.Del("Origin") // a host's server calls, and no page
	}}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		message, err := io.ReadAll(r.Body)
		if err != nil {
			return // the tab has been closed
		}
		if bytes.Contains(message, []byte(`"show_cell"`)) {
			c.looks.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(message)) // the proxy fails now and then where an answer comes before it has seen the body's end
		proxy.ServeHTTP(w, r)
	})
	host, sandbox := httptest.NewServer(mux), httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", appPolicy)
		http.ServeFile(w, r, "testdata/apps/sandbox.html")
	}))
	t.Cleanup(host.Close)
	t.Cleanup(sandbox.Close)
	c.tab = s.stranger(t)
	c.expects("favicon.ico", "status of 405", "status of 404") // the client asks for a stream, which there is none of
	c.do(chromedp.EmulateViewport(700, 900), chromedp.Navigate(host.URL+"/host?sandbox="+url.QueryEscape(sandbox.URL)))
	c.until(`window.host`)
	tools := eval[[]string](c.tab, fmt.Sprintf(`host.connect(%q)`, revision))
	if said := strings.Join(tools, "\n"); !strings.Contains(said, `execute_python {"resourceUri":"ui://cellblock/cell"}`) {
		t.Fatalf("the host is told of no app: %s", said)
	}
	return c
}

// call calls a tool as a model does, in a card of its own, and returns its number.
func (c conversation) call(tool string, args map[string]any, options ...map[string]any) int {
	c.t.Helper()
	given := map[string]any{}
	for _, o := range options {
		given = o
	}
	return eval[int](c.tab, fmt.Sprintf("host.card(%q, %s, %s)", tool, inJSON(args), inJSON(given)))
}

func (c conversation) python(session, code string) int {
	c.t.Helper()
	return c.call("execute_python", map[string]any{"session_id": session, "code": code, "wait_seconds": 60})
}

func inJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// probe is what the sandbox sees of a card's page.
func probe[T any](c conversation, card int, what, selector string) T {
	c.t.Helper()
	return eval[T](c.tab, fmt.Sprintf("host.inside(%d, %q, %s)", card, what, inJSON(selector)))
}

// says waits until a part of a card has all these words.
func (c conversation) says(card int, selector string, words ...string) {
	c.t.Helper()
	var text string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		text = probe[string](c, card, "text", selector)
		missing := 0
		for _, word := range words {
			if !strings.Contains(text, word) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
	c.t.Fatalf("card %d never says %q at %s:\n%s", card, words, selector, text)
}

// shot is a picture of the first cards, where somebody has said into which folder they go.
func (c conversation) shot(name string, width int64) {
	c.t.Helper()
	c.do(chromedp.EmulateViewport(width, 925))
	var picture []byte
	c.do(chromedp.CaptureScreenshot(&picture)) // what is below is not painted
	if name = "conversation-" + name; wanted(name) {
		if err := os.WriteFile(filepath.Join(os.Getenv(picturesDir), name+".png"), picture, 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
}

const plot = `import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(6, 2.6))
ax.plot([1, 4, 2, 8, 5, 7])
ax.set_title("orders")
plt.show()`

// A person sees a cell in the conversation: its code, what it prints while it runs, tables and pictures.
func TestCellsInAConversation(t *testing.T) {
	s := shared(t)
	for _, revision := range []string{"", "2026-07-28"} {
		t.Run("revision"+revision, func(t *testing.T) {
			c := s.converse(t, revision)
			card := c.python("sales", "import time\nfor epoch in range(3):\n    print('epoch', epoch)\n    time.sleep(1)")
			c.says(card, "#code", "import time")
			c.says(card, "#outputs", "epoch 0") // while it runs
			if got := probe[string](c, card, "text", "#status"); got != "running" {
				t.Errorf("its state is %q", got)
			}
			if probe[int](c, card, "count", "#code .hl-kn") == 0 {
				t.Errorf("the code has no colours: %s", probe[string](c, card, "html", "#code"))
			}
			c.says(card, "#outputs", "epoch 0\nepoch 1\nepoch 2")
			c.says(card, "#status", "ok")
			c.says(card, "#number", "[1]")
			if got := probe[int](c, card, "visible", "#interrupt"); got != 0 {
				t.Error("what has ended can be interrupted")
			}

			table := c.python("sales", "import pandas as pd\norders = pd.DataFrame({'city': ['Ghent', 'Lyon', 'Turin'],\n                       'orders': [1200, 87, 410],\n                       'share': [0.707, 0.051, 0.242]})\norders")
			c.says(table, "#outputs table", "Ghent", "0.707")
			picture := c.python("sales", plot)
			c.says(picture, "#status", "ok")
			if got := probe[int](c, picture, "natural", ".picture img"); got < 400 {
				t.Errorf("the picture is %d pixels wide", got)
			}
			failed := c.python("sales", "open('job.py', 'w').write('print(\"done by a script\")')\ndef half(x):\n    return x / 0\n\nhalf(3)")
			c.says(failed, "#status", "error")
			c.says(failed, "#outputs .failed", "ZeroDivisionError", "division by zero")
			last := c.call("execute_file", map[string]any{"session_id": "sales", "path": "job.py"})
			c.says(last, "#code", "run job.py")
			c.says(last, "#outputs", "done by a script")

			probe[bool](c, table, "click", "#open")
			c.until(fmt.Sprintf(`host.cards[%d].opened.length`, table))
			if got := eval[string](c.tab, fmt.Sprintf(`host.cards[%d].opened[0]`, table)); got != s.base+"/s/sales#c2" {
				t.Errorf("it opens %s", got)
			}
			probe[bool](c, table, "click", "#larger")
			c.until(fmt.Sprintf(`host.cards[%d].modes[0] === 'fullscreen'`, table))
			c.shot("light"+revision, 700)
			c.shot("narrow"+revision, 320)
			for i := range 5 {
				if wide := probe[float64](c, i, "wide", ""); wide > 0 {
					t.Errorf("card %d is %v pixels wider than a narrow window", i, wide)
				}
			}
			eval[any](c.tab, `host.setTheme('dark')`)
			if got := probe[string](c, table, "colour", "body"); !strings.HasPrefix(got, "rgb(250, 249, 245)") {
				t.Errorf("in the dark: %s", got)
			}
			c.shot("dark"+revision, 700)
		})
	}
}

// A long cell grows as far as a conversation has room, and is as small again when it has less; its text is folded and unfolded.
func TestLongCellsInAConversation(t *testing.T) {
	c := shared(t).converse(t, "2026-07-28")
	card := c.python("long", "for i in range(300): print('line', i)\nfrom IPython.display import display, HTML\nfor i in range(60): display(i)")
	c.says(card, "#status", "ok")
	c.says(card, "#outputs .unfold", "Show all 300 lines")
	c.until(fmt.Sprintf(`host.cards[%d].heights.at(-1) > 300 && host.cards[%[1]d].heights.at(-1) <= 620`, card))
	probe[bool](c, card, "click", ".unfold")
	c.says(card, "#outputs .unfolded", "line 0\n", "line 150\n", "line 299")
	probe[bool](c, card, "click", ".refold")
	c.says(card, "#outputs .unfold", "Show all 300 lines")
	again := c.python("long", "from IPython.display import clear_output\nimport time\nfor i in range(30): print(i)\ntime.sleep(1.5)\nclear_output()\nprint('short')")
	c.says(again, "#outputs", "29")
	c.until(fmt.Sprintf(`host.cards[%d].heights.at(-1) > 300`, again))
	c.says(again, "#outputs", "short")
	c.until(fmt.Sprintf(`host.cards[%d].heights.at(-1) < 260`, again))
	eval[any](c.tab, fmt.Sprintf(`host.cards[%d].bridge.setHostContext({theme: 'light', containerDimensions: {maxHeight: 240}})`, card))
	c.until(fmt.Sprintf(`host.cards[%d].heights.at(-1) <= 240`, card))
}

// Its user stops a cell from the conversation, and the model is told so.
func TestInterruptInAConversation(t *testing.T) {
	c := shared(t).converse(t, "2026-07-28")
	card := c.python("stop", "import time\nprint('begun')\ntime.sleep(300)")
	c.says(card, "#outputs", "begun")
	c.says(card, "#interrupt", "Interrupt")
	c.shot("running", 700)
	probe[bool](c, card, "click", "#interrupt")
	c.says(card, "#status", "interrupted")
	result := eval[string](c.tab, fmt.Sprintf(`host.cards[%d].told.then((r) => JSON.stringify(r.content))`, card))
	if !strings.Contains(result, "interrupted this cell") {
		t.Errorf("the model is told %s", result)
	}
	looks := shared(t).converse(t, "2026-07-28", "sessions:read", "python:execute")
	card = looks.python("looks", "import time\nprint('begun')\ntime.sleep(2)")
	looks.says(card, "#outputs", "begun")
	if got := probe[int](looks, card, "visible", "#interrupt"); got != 0 {
		t.Error("who may not interrupt has a button for it")
	}
}

// A conversation that is opened again shows its cells as they were; one whose host calls no tools for pages shows what the call brought.
func TestCellsInAnOldConversation(t *testing.T) {
	c := shared(t).converse(t, "2026-07-28")
	code := "print('kept')\n" + plot
	first := c.python("old", code)
	c.says(first, "#status", "ok")
	result := eval[map[string]any](c.tab, fmt.Sprintf(`host.cards[%d].told`, first))
	args := map[string]any{"session_id": "old", "code": code}
	before := c.looks.Load()
	again := c.call("execute_python", args, map[string]any{"shown": result})
	c.says(again, "#number", "[1]")
	c.says(again, "#outputs", "kept")
	if n := c.looks.Load() - before; n != 1 {
		t.Errorf("it looks %d times", n)
	}
	plain := c.call("execute_python", args, map[string]any{"shown": result, "serverTools": false})
	c.says(plain, "#code", "kept")
	c.says(plain, "#outputs", "kept", "session old")
	if got := probe[int](c, plain, "natural", "img"); got < 100 {
		t.Errorf("the picture of the result is %d pixels wide", got)
	}
	refused := c.call("execute_python", map[string]any{"session_id": "old", "code": "1", "profile": "none such"})
	c.says(refused, "#status", "error")
	c.says(refused, "#outputs", "none such")
}

// A call that was refused shows why, and not the cell of another call with the same code.
func TestRefusedCallInAConversation(t *testing.T) {
	c := shared(t).converse(t, "2026-07-28")
	card := c.python("twin", "import time\nprint('the other')\ntime.sleep(4)")
	c.says(card, "#outputs", "the other")
	eval[any](c.tab, fmt.Sprintf(`host.cards[%d].bridge.sendToolResult({isError: true, content: [{type: 'text', text: 'Error: too many calls'}]})`, card))
	c.says(card, "#status", "error")
	if got := probe[string](c, card, "text", "#outputs, .cell-head"); !strings.Contains(got, "too many calls") || strings.Contains(got, "the other") || strings.Contains(got, "[1]") || strings.Contains(got, "Interrupt") {
		t.Errorf("it shows %s", got)
	}
}

// A text that is unfolded while its cell runs stays so when more comes.
func TestUnfoldingWhatRuns(t *testing.T) {
	c := shared(t).converse(t, "2026-07-28")
	card := c.python("long", "import time\nfor i in range(300): print('line', i)\ntime.sleep(3)\nprint('more')\ntime.sleep(6)")
	c.says(card, "#outputs .unfold", "Show all 300 lines")
	for before := c.looks.Load(); c.looks.Load() == before; { // until it waits for news
		c.says(card, "#outputs", "line 299")
	}
	probe[bool](c, card, "click", ".unfold")
	c.says(card, "#outputs .unfolded", "line 150\n")
	c.says(card, "#outputs", "more")
	if probe[int](c, card, "count", ".unfolded") == 0 {
		t.Error("it is folded again")
	}
}

// A host that answers at once is not asked all the time.
func TestImpatientHostOfAConversation(t *testing.T) {
	c := shared(t).converse(t, "2026-07-28")
	card := c.call("execute_python", map[string]any{"session_id": "never"}, map[string]any{"shown": map[string]any{"content": []any{}}})
	took := eval[float64](c.tab, fmt.Sprintf(`new Promise((resolve) => {
		const {bridge} = host.cards[%d], began = performance.now();
		let n = 0;
		bridge.oncalltool = async () => { if (++n === 4) resolve(performance.now() - began); return {content: [], structuredContent: {status: 'absent', items: []}}; };
		bridge.sendToolInput({arguments: {session_id: 'never', code: '1'}});
	})`, card))
	if took < 1000 {
		t.Errorf("it is asked four times in %v ms", took)
	}
}

// Nothing that a cell is or shows runs in the page, even if it came past all that makes it harmless; and nobody but the host is heard.
func TestNothingBreaksOutInAConversation(t *testing.T) {
	c := shared(t).converse(t, "2026-07-28")
	c.expects("Content Security Policy", "Refused to", "violates the following")
	for _, text := range injections {
		q := quoted(text)
		card := c.python("hostile", fmt.Sprintf("# %s\nfrom IPython.display import *\nprint(%s, '\\x1b]8;;javascript:window.owned=1\\x07link\\x1b]8;;\\x07')\n"+
			"display(HTML(%s), Markdown(%s), Latex(%s), Javascript('window.owned=1'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"><script>parent.owned=1</script></svg>'))\n"+
			"print('all of it')\nraise type(%s, (Exception,), {})(%s)", text, q, q, q, q, q, q))
		c.says(card, "#outputs", "all of it")
		c.says(card, "#status", "error")
		if banned := probe[int](c, card, "count", "#outputs :is(script, style, iframe, svg, form, object, link, meta, [style], [onload], [onerror])"); banned > 0 {
			t.Errorf("%s is in the page: %s", text, probe[string](c, card, "html", "#outputs"))
		}
		probe[bool](c, card, "inject", text+`<img src=x onerror="owned=1"><img src="https://leak.invalid/x.png">`)
		if probe[bool](c, card, "owned", "") {
			t.Fatalf("%s runs", text)
		}
	}
	card := c.python("hostile", "from IPython.display import *\ndisplay(Markdown('[here](https://example.com/a) [there](javascript:window.owned=1) [file](/etc/passwd)'))")
	c.says(card, "#outputs", "here")
	for range 3 {
		probe[bool](c, card, "click", "#outputs a")
		probe[bool](c, card, "click", "#outputs a:last-of-type")
	}
	c.until(fmt.Sprintf(`host.cards[%d].opened.length >= 3`, card))
	if got := eval[string](c.tab, fmt.Sprintf(`[...new Set(host.cards[%d].opened)].join(' ')`, card)); got != "https://example.com/a" {
		t.Errorf("it opens %s", got)
	}
	slow := c.python("hostile", "import time\nprint('mine')\ntime.sleep(2)\nprint('end')")
	c.says(slow, "#outputs", "mine")
	for _, method := range []string{"ui/notifications/tool-input", "ui/notifications/tool-cancelled", "ui/resource-teardown"} {
		probe[bool](c, slow, "stranger", method)
	}
	c.says(slow, "#outputs", "mine\nend")
	if got := probe[string](c, slow, "text", "article"); strings.Contains(got, "forged") {
		t.Errorf("a stranger is heard: %s", got)
	}
}
