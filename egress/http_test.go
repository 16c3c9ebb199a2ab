package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"cellblock/internal/fault"
)

// serve is a host that says what it was asked.
func serve(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s host=%s body=%s upgrade=%q proxy=%q", r.Method, r.RequestURI, r.Host, body, r.Header.Get("Upgrade"), r.Header.Get("Proxy-Connection"))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestPlainHTTP(t *testing.T) {
	s := serve(t)
	d := open(t, local("api.test"), Config{Resolver: &names{found: map[string][]string{"api.test": {"127.0.0.1"}, "other.test": {"127.0.0.1"}}}})
	c := d.client()
	address := "http://api.test:" + port(t, s.URL)
	code, body := d.get(c, address+"/a?b=1;c=%20")
	if want := "GET /a?b=1;c=%20 host=api.test:" + port(t, s.URL); code != 200 || !strings.HasPrefix(body, want) {
		t.Errorf("%d %q, want %q", code, body, want)
	}
	r := d.record()
	if r.Err != nil || r.Host != "api.test" || r.Protocol != "http" || r.Address.String() != s.Listener.Addr().String() || r.Sent == 0 || r.Received < int64(len(body)) ||
		r.Subject != "ada" || r.Session != "s" || r.Profile != "p" || r.Took <= 0 {
		t.Errorf("%+v", r)
	}
	// The same connection, kept alive, asks for another host.
	code, body = d.get(c, "http://other.test:"+port(t, s.URL)+"/")
	if code != 403 || !strings.Contains(body, "other.test port "+port(t, s.URL)+" is not among the hosts") || !strings.Contains(body, "Those are api.test.") {
		t.Errorf("%d %q", code, body)
	}
	if r := d.record(); fault.KindOf(r.Err) != fault.Forbidden || r.Host != "other.test" || r.Address.IsValid() || r.Sent+r.Received != 0 {
		t.Errorf("%+v", r)
	}
	resp, err := c.Post(address, "text/plain", strings.NewReader(strings.Repeat("x", 300000)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || len(got) < 300000 {
		t.Errorf("%d, %d bytes", resp.StatusCode, len(got))
	}
	if r := d.record(); r.Sent < 300000 {
		t.Errorf("%+v", r)
	}
}

func TestKeptAliveConnectionIsDecidedAnew(t *testing.T) {
	s := serve(t)
	d := open(t, local("127.0.0.1:"+port(t, s.URL)), Config{})
	conn := d.dial()
	r := bufio.NewReader(conn)
	for i, tt := range []struct {
		target, host string
		status       int
	}{
		{s.URL + "/1", s.Listener.Addr().String(), 200},
		{s.URL + "/2", "metadata.test", 200}, // the address counts, and the host is told it
		{"http://169.254.169.254/latest", "169.254.169.254", 403},
		{s.URL + "/2", "y", 200},
		{"http://127.0.0.1:1/", "127.0.0.1", 403},
		{s.URL + "/3", "x", 200},
	} {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", tt.target, tt.host)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != tt.status || tt.status == 200 && !strings.Contains(string(body), "host="+s.Listener.Addr().String()) {
			t.Errorf("%s: %d %s", tt.target, resp.StatusCode, body)
		}
		if resp.Close != (tt.status == 403) {
			t.Errorf("%s: the connection ends: %t", tt.target, resp.Close)
		}
		if resp.Close {
			conn = d.dial()
			r = bufio.NewReader(conn)
		}
	}
}

// Many clients show no more of an answer than its status: the reason stands there, and who gives it. A request with a body is read
// to its end before it is refused.
func TestRefusalSaysWhoRefuses(t *testing.T) {
	d := open(t, local("127.0.0.1:1"), Config{})
	resp, err := d.client().Get("http://other.test/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !strings.HasPrefix(resp.Status, "403 Forbidden (cellblock: other.test port 80 is not among the hosts") {
		t.Error(resp.Status)
	}
	resp, err = d.client().Post("http://other.test/", "text/plain", strings.NewReader(strings.Repeat("x", 100_000)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 403 || !strings.HasPrefix(string(body), "cellblock: other.test") {
		t.Errorf("%s: %s", resp.Status, body)
	}
}

// What is refused is answered so also where the connection cannot be taken over: silence there is a 200.
func TestRefusalWithoutTheConnection(t *testing.T) {
	g, err := New(Config{Interfaces: func() ([]net.Addr, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	way := g.Door(Who{Subject: "ada", Session: "s", Profile: "p"}, rules(t, local("127.0.0.1:1")))
	for want, r := range map[int]*http.Request{
		http.StatusForbidden:  httptest.NewRequest(http.MethodGet, "http://other.test/", nil),
		http.StatusBadGateway: httptest.NewRequest(http.MethodConnect, "other.test:443", nil),
	} {
		w := httptest.NewRecorder() // it cannot be taken over
		way.request(t.Context(), w, r)
		if w.Code != want || !strings.HasPrefix(w.Body.String(), "cellblock: ") {
			t.Errorf("%s: %d %q", r.Method, w.Code, w.Body)
		}
	}
}

func TestNoProtocolIsSwitchedTo(t *testing.T) {
	s := serve(t)
	d := open(t, local("127.0.0.1"), Config{})
	answer := d.say("GET " + s.URL + "/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 200 OK") || !strings.Contains(answer, `upgrade=""`) {
		t.Errorf("%q", answer)
	}
	switching := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nopen")
	}))
	defer switching.Close()
	if answer = d.say("GET " + switching.URL + "/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET http://evil/"); !strings.HasPrefix(answer, "HTTP/1.1 502") || strings.Contains(answer, "open") {
		t.Errorf("%q", answer)
	}
}

func TestConnect(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secret") }))
	defer s.Close()
	d := open(t, local("*.shop.test"), Config{Resolver: &names{found: map[string][]string{"www.shop.test": {"127.0.0.1"}}}})
	c := d.client()
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	code, body := d.get(c, "https://www.shop.test:"+port(t, s.URL))
	if code != 200 || body != "secret" {
		t.Errorf("%d %q", code, body)
	}
	c.CloseIdleConnections()
	if r := d.record(); r.Err != nil || r.Protocol != "connect" || r.Host != "www.shop.test" || r.Sent < 100 || r.Received < 100 {
		t.Errorf("%+v", r)
	}
	if _, err := c.Get("https://shop.test/"); err == nil || !strings.Contains(err.Error(), "not among the hosts") {
		t.Errorf("what a client shows of a refusal: %v", err)
	}
	if r := d.record(); fault.KindOf(r.Err) != fault.Forbidden {
		t.Errorf("%+v", r)
	}
	if _, err := c.Get("https://none.shop.test/"); err == nil || !strings.Contains(err.Error(), "there is no host none.shop.test") {
		t.Errorf("%v", err)
	}
}

// What a client sends behind CONNECT, before it has the answer, is not lost.
func TestConnectWithEarlyData(t *testing.T) {
	ln := echo(t)
	d := open(t, local("127.0.0.1"), Config{})
	if answer := d.say("CONNECT " + ln + " HTTP/1.1\r\nHost: x\r\n\r\nearly"); answer != "HTTP/1.1 200 Connection established\r\n\r\nearly" {
		t.Errorf("%q", answer)
	}
}

// echo is a host that sends back what it gets, when that has ended.
func echo(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			all, _ := io.ReadAll(conn)
			_, _ = conn.Write(all)
			conn.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func TestRequestsThatAreNone(t *testing.T) {
	d := open(t, Policy{Mode: Internet}, Config{Resolver: &names{}})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n":                                      "400",
		"GET https://pypi.org/ HTTP/1.1\r\nHost: pypi.org\r\n\r\n":                            "400",
		"GET ftp://pypi.org/ HTTP/1.1\r\nHost: pypi.org\r\n\r\n":                              "400",
		"GET http:///x HTTP/1.1\r\nHost: pypi.org\r\n\r\n":                                    "400",
		"CONNECT pypi.org HTTP/1.1\r\nHost: x\r\n\r\n":                                        "400",
		"CONNECT pypi.org:99999 HTTP/1.1\r\nHost: x\r\n\r\n":                                  "400",
		"CONNECT :443 HTTP/1.1\r\nHost: x\r\n\r\n":                                            "400",
		"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n":                                    "403",
		"CONNECT [::1]:22 HTTP/1.1\r\nHost: x\r\n\r\n":                                        "403",
		"CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1\r\nHost: x\r\n\r\n":                     "403",
		"CONNECT 0:80 HTTP/1.1\r\nHost: x\r\n\r\n":                                            "400", // a name that nobody has
		"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": "431",
		"hello\r\n\r\n": "400",
	} {
		if answer := d.say(request); !strings.HasPrefix(answer, "HTTP/1.1 "+want+" ") {
			t.Errorf("%.60q: %.200q, want %s", request, answer, want)
		}
	}
}

// Where this machine resolves no names, as it is offline, nobody is told that a host does not exist.
func TestNamesThatCannotBeResolved(t *testing.T) {
	d := open(t, Policy{Mode: Internet}, Config{Resolver: offline{}})
	for _, request := range []string{"CONNECT pypi.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://pypi.org/ HTTP/1.1\r\nHost: pypi.org\r\n\r\n"} {
		if status, _, _ := strings.Cut(d.say(request), "\r\n"); status != "HTTP/1.1 502 Bad Gateway (cellblock: the name pypi.org "+Unresolved+")" {
			t.Errorf("%q", status)
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	g, err := New(Config{Interfaces: func() ([]net.Addr, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	way := g.Door(Who{}, rules(t, local("127.0.0.1")))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, said := range []string{"", "GET", "\x05\x01", "CONNECT " + ln.Addr().String() + " HTTP/1.1\r\nHost: x\r\n\r\n"} {
		ctx, cancel := context.WithCancel(context.Background())
		here, there := net.Pipe()
		ended := make(chan struct{})
		go func() { way.Serve(ctx, there, 3128); close(ended) }()
		if _, err := io.WriteString(here, said); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(said, "CONNECT") {
			if _, err := io.ReadFull(here, make([]byte, 12)); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("it goes on behind %q", said)
		}
		here.Close()
	}
}

func TestUpstreamProxy(t *testing.T) {
	s := serve(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secret") }))
	defer secure.Close()
	// The company's proxy is another door, which knows names that we do not.
	company := open(t, local("inner.test", "127.0.0.1"), Config{Resolver: &names{found: map[string][]string{"inner.test": {"127.0.0.1"}}}})
	var logins []string
	guard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		logins = append(logins, r.Header.Get("Proxy-Authorization"))
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer guard.Close()
	here := &names{found: map[string][]string{"evil.test": {"10.0.0.1"}, "direct.test": {"127.0.0.1"}}}
	p := local("inner.test", "evil.test", "direct.test")
	d := open(t, p, Config{Proxy: "http://" + company.addr, NoProxy: "direct.test", Resolver: here})
	c := d.client()
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	if code, body := d.get(c, "http://inner.test:"+port(t, s.URL)+"/x"); code != 200 || !strings.Contains(body, "GET /x host=inner.test") {
		t.Errorf("%d %q", code, body)
	}
	if r := d.record(); r.Err != nil || !r.ByProxy || r.Address.IsValid() || company.record().Protocol != "http" {
		t.Errorf("%+v", r)
	}
	if code, body := d.get(c, "https://inner.test:"+port(t, secure.URL)); code != 200 || body != "secret" {
		t.Errorf("%d %q", code, body)
	}
	c.CloseIdleConnections()
	if r := d.record(); r.Err != nil || !r.ByProxy || company.record().Protocol != "connect" {
		t.Errorf("%+v", r)
	}
	if code, body := d.get(c, "http://evil.test/"); code != 403 || !strings.Contains(body, "10.0.0.1 is private") {
		t.Errorf("%d %q", code, body)
	}
	d.record()
	if code, _ := d.get(c, "http://direct.test:"+port(t, s.URL)); code != 200 {
		t.Errorf("%d", code)
	}
	if r := d.record(); r.ByProxy || !r.Address.IsValid() {
		t.Errorf("%+v", r)
	}
	u, _ := url.Parse(guard.URL)
	u.User = url.UserPassword("ada", "pass")
	d = open(t, p, Config{Proxy: u.String(), Resolver: here})
	if answer := d.say("CONNECT inner.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(answer, "refused a connection to inner.test:443: 407") || strings.Contains(answer, "pass") {
		t.Errorf("%q", answer)
	}
	if code, _ := d.get(d.client(), "http://inner.test/"); code != 407 {
		t.Errorf("%d", code)
	}
	if len(logins) != 2 || logins[0] != "Basic YWRhOnBhc3M=" || logins[1] != logins[0] {
		t.Errorf("%q", logins)
	}
	for _, wrong := range []string{"proxy:3128", "socks5://a:1", "http://", ":"} {
		if _, err := New(Config{Proxy: wrong}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestOwnAddresses(t *testing.T) {
	s := serve(t)
	own := netip.MustParseAddrPort(s.Listener.Addr().String())
	for name, tt := range map[string]struct {
		policy Policy
		config Config
		code   int
		text   string
	}{
		"an exception opens this machine": {local("127.0.0.1"), Config{}, 200, ""},
		"never the server":                {local("127.0.0.1"), Config{Listening: []netip.AddrPort{own}}, 403, "the server's own"},
		"nor where it listens everywhere": {local("127.0.0.1"), Config{Listening: []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), own.Port())}}, 403, "the server's own"},
		"in whatever words":               {local("127.0.0.1"), Config{Listening: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("::ffff:0.0.0.0"), own.Port())}}, 403, "the server's own"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, tt.policy, tt.config)
			if code, body := d.get(d.client(), s.URL); code != tt.code || !strings.Contains(body, tt.text) {
				t.Errorf("%d %q", code, body)
			}
		})
	}
	// A public address that is one of this machine's.
	c := Config{Resolver: &names{found: map[string][]string{"me.test": {"9.9.9.9"}}}, Interfaces: func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(9, 9, 9, 9), Mask: net.CIDRMask(24, 32)}}, nil
	}}
	d := open(t, Policy{Mode: Internet}, c)
	if code, body := d.get(d.client(), "http://me.test:1"); code != 403 || !strings.Contains(body, "9.9.9.9 is this machine's own") {
		t.Errorf("%d %q", code, body)
	}
}

// The name leads to an address that is allowed when it is looked up, and elsewhere a moment later.
// What is refused is a line of the audit log, too.
func TestRefusedConnectionsAreBoundedLikeOthers(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := g.Door(Who{}, rules(t, local("pypi.org")))
	d.limiter = rate.NewLimiter(0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, want := range []fault.Kind{fault.Forbidden, fault.Busy} {
		if _, err := d.visit(protocolConnect, "evil.test", 443).dial(ctx); fault.KindOf(err) != want {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

func TestRebinding(t *testing.T) {
	s := serve(t)
	n := &names{found: map[string][]string{"evil.test": {"127.0.0.1"}}, after: map[string][]string{"evil.test": {"169.254.169.254"}}}
	d := open(t, local("evil.test"), Config{Resolver: n})
	c := d.client()
	address := "http://evil.test:" + port(t, s.URL)
	if code, _ := d.get(c, address); code != 200 || len(n.asked) != 1 {
		t.Errorf("%d, %d questions", code, len(n.asked))
	}
	if code, body := d.get(c, address); code != 403 || !strings.Contains(body, "of cloud metadata") {
		t.Errorf("%d %q", code, body)
	}
	// Of several addresses only those that are allowed are tried.
	n.after, n.found = nil, map[string][]string{"evil.test": {"10.0.0.1", "::ffff:169.254.169.254", "::1", "127.0.0.1"}}
	if code, _ := d.get(c, address); code != 200 {
		t.Errorf("%d", code)
	}
	if asked := strings.Join(n.asked, " "); asked != "evil.test. evil.test. evil.test." {
		t.Errorf("asked for %s", asked)
	}
}

// FuzzServe has a door that leads nowhere take what users' code may send.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\n\r\n", "\x05\x01\x00\x05\x01\x00\x03\x01a\x00\x50", "\x05\x00", "\x05\x01\x00\x05\x01\x00\x04"} {
		f.Add([]byte(seed))
	}
	g, err := New(Config{Resolver: &names{}})
	if err != nil {
		f.Fatal(err)
	}
	way := g.Door(Who{}, nil)
	f.Fuzz(func(t *testing.T, said []byte) {
		here, there := net.Pipe()
		ended := make(chan struct{})
		go func() { way.Serve(context.Background(), there, 3128); close(ended) }()
		go io.Copy(io.Discard, here)
		_ = here.SetWriteDeadline(time.Now().Add(time.Minute))
		_, _ = here.Write(said)
		here.Close()
		<-ended
	})
}
