package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"cellblock/auth"
	"cellblock/mcpserver/transport"
)

// One owner's requests leave room for others', and those that have ended for his own.
func TestRequestsAtTheSameTime(t *testing.T) {
	s := newShares(3, 2)
	running, end := make(chan struct{}), make(chan struct{})
	h := boundRequests(s, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stay" {
			running <- struct{}{}
			<-end
		}
	}))
	ask := func(who, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.NewContext(r.Context(), auth.Principal{Issuer: "i", Subject: who})))
		return w
	}
	ended := make(chan struct{})
	stay := func(who string) {
		go func() { ask(who, "/stay"); ended <- struct{}{} }()
		<-running
	}
	stay("ann")
	stay("ann")
	if w := ask("ann", "/"); w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "2 are allowed") {
		t.Errorf("ann's third: %d %s", w.Code, w.Body)
	}
	if w := ask("bob", "/"); w.Code != 200 {
		t.Errorf("bob: %d %s", w.Code, w.Body)
	}
	stay("bob")
	if w := ask("cyd", "/"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("the fourth of all: %d %s", w.Code, w.Body)
	}
	close(end)
	for range 3 {
		<-ended
	}
	if w := ask("ann", "/"); w.Code != 200 || s.all != 0 || len(s.by) != 0 {
		t.Errorf("afterwards: %d, and %d are counted, of %v", w.Code, s.all, s.by)
	}
}

// A call that runs counts, also where nobody reads its answer; those without a token are refused for that, and not counted.
func TestRequestsOfAnOwnerAreBounded(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Limits.PerOwner = 1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block","arguments":{}}}`, asAnn...)
	}()
	<-s.running
	if got := s.ask("POST", "/mcp", ping, asAnn...); got.Code != 429 {
		t.Errorf("ann: %d %s", got.Code, got.Body)
	}
	asBob := append([]string{"Authorization", "Bearer token-of-bob"}, asAnn[2:]...)
	if got := s.ask("POST", "/mcp", ping, asBob...); got.Code != 200 {
		t.Errorf("bob: %d %s", got.Code, got.Body)
	}
	for _, path := range []string{"/mcp", "/health", "/ready"} {
		if got := s.ask("GET", path, ""); got.Code == 429 {
			t.Errorf("%s without a token: %d", path, got.Code)
		}
	}
	s.dispatcher.Cancel()
	<-ended
	if got := s.ask("POST", "/mcp", ping, asAnn...); got.Code == 429 {
		t.Errorf("ann, afterwards: %d", got.Code)
	}
}

// Who has too many requests under way can cancel them, his own only, and can do nothing else.
func TestACancelIsNeverTooMany(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Limits.PerOwner = 1 })
	hello := s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, asAnn...)
	inSession := append([]string{"Mcp-Session-Id", hello.Header().Get("Mcp-Session-Id")}, asAnn...)
	ended := make(chan *httptest.ResponseRecorder)
	go func() {
		ended <- s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block","arguments":{}}}`, inSession...)
	}()
	call := <-s.running
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	for name, body := range map[string]string{
		"a request": ping, "a cancel and more": cancel + ping, "what is too large": strings.Repeat(" ", 1001) + cancel,
	} {
		if got := s.ask("POST", "/mcp", body, inSession...); got.Code != 429 {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	if got := s.ask("DELETE", "/mcp", "", inSession...); got.Code != 429 {
		t.Errorf("DELETE: %d %s", got.Code, got.Body)
	}
	if got := s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":"x","result":{}}`, inSession...); got.Code != 202 {
		t.Errorf("the reply to a question: %d %s", got.Code, got.Body)
	}
	if call.Err() != nil {
		t.Fatal("the call has ended before it was cancelled")
	}
	if got := s.ask("POST", "/mcp", cancel, inSession...); got.Code != 202 {
		t.Fatalf("the cancel: %d %s", got.Code, got.Body)
	}
	if got := <-ended; !errors.Is(context.Cause(call), transport.ErrCancelled) {
		t.Errorf("the call ended by %v: %s", context.Cause(call), got.Body)
	}
}

// boundedSite serves with limits on its connections, and returns where.
func boundedSite(t *testing.T, limits Limits, proxies ...string) (addr string) {
	t.Helper()
	s := newSite(t, func(c *Config) {
		c.Limits = limits
		for _, p := range proxies {
			c.Proxies = append(c.Proxies, netip.MustParsePrefix(p))
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ctx, l, s.handler) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// connectFrom opens a connection from one of this machine's addresses, and sends a request over it.
func connectFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Skipf("no connection from %s: %v", from, err)
	}
	t.Cleanup(func() { conn.Close() })
	_, _ = io.WriteString(conn, "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n") // reading tells
	return conn
}

// answers tells whether a request was answered: with no connection left for it, it is not.
func answers(conn net.Conn, patience time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var start [12]byte
	n, _ := io.ReadFull(conn, start[:])
	return string(start[:n]) == "HTTP/1.1 200"
}

func TestConnectionsOfOneClient(t *testing.T) {
	addr := boundedSite(t, Limits{Connections: 3, PerClient: 2})
	first, second := connectFrom(t, "127.0.0.1", addr), connectFrom(t, "127.0.0.1", addr)
	if !answers(first, time.Minute) || !answers(second, time.Minute) {
		t.Fatal("a client's first two connections are not served")
	}
	if answers(connectFrom(t, "127.0.0.1", addr), time.Minute) {
		t.Error("its third is served")
	}
	other := connectFrom(t, "127.0.0.2", addr)
	if !answers(other, time.Minute) {
		t.Error("another client's is not")
	}
	waits := connectFrom(t, "127.0.0.2", addr)
	if answers(waits, 100*time.Millisecond) {
		t.Error("the fourth of all is served")
	}
	first.Close()
	if !answers(waits, time.Minute) {
		t.Error("the fourth of all is not served when another has ended")
	}
}

// Behind a proxy all connections are the proxy's.
func TestConnectionsOfAProxy(t *testing.T) {
	addr := boundedSite(t, Limits{PerClient: 1}, "127.0.0.1/32")
	for n := range 3 {
		if !answers(connectFrom(t, "127.0.0.1", addr), time.Minute) {
			t.Errorf("connection %d of the proxy is not served", n+1)
		}
	}
}

// Whoever has one address of IPv6 has as many as he likes.
func TestWhoIsOneClient(t *testing.T) {
	l := &sharedListener{cfg: Config{Proxies: []netip.Prefix{netip.MustParsePrefix("2001:db8:0:1::5/128")}}}
	for _, c := range []struct {
		from, client string
		bound        bool
	}{
		{"192.0.2.1:1000", "192.0.2.1", true},
		{"192.0.2.2:1000", "192.0.2.2", true},
		{"[::ffff:192.0.2.1]:1000", "192.0.2.1", true},
		{"[2001:db8:0:1::1]:1000", "2001:db8:0:1::/64", true},
		{"[2001:db8:0:1:ffff::2]:2000", "2001:db8:0:1::/64", true},
		{"[2001:db8:0:2::1]:1000", "2001:db8:0:2::/64", true},
		{"[2001:db8:0:1::5]:1000", "2001:db8:0:1::/64", false},
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
		if client, bound := l.client(connFrom{addr: addr}); client != c.client || bound != c.bound {
			t.Errorf("%s: %q, %v", c.from, client, bound)
		}
	}
}

// connFrom is a connection of which only the far end is known.
type connFrom struct {
	net.Conn
	addr net.Addr
}

func (c connFrom) RemoteAddr() net.Addr { return c.addr }
