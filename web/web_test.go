package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// verify takes "token-of-NAME" for NAME's token.
func verify(_ context.Context, token string) (auth.Principal, error) {
	name, ok := strings.CutPrefix(token, "token-of-")
	if !ok {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "the token does not verify")
	}
	return auth.Principal{Issuer: "test", Subject: name, Scopes: []string{"x"}}, nil
}

type site struct {
	handler    http.Handler
	dispatcher *transport.Dispatcher
	log        *lockedBuffer
	looks      atomic.Int64
	health     Health
	running    chan context.Context // of the tool "block"
}

func newSite(t *testing.T, change ...func(*Config)) *site {
	s := &site{log: &lockedBuffer{}, health: Health{Status: "ok", Detail: map[string]string{"provisioner": "fake"}}, running: make(chan context.Context, 8)}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	tools := server.NewMCPServer("probe", "1")
	tools.AddTool(mcp.NewTool("echo", mcp.WithString("msg")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("msg", "")), nil
	})
	tools.AddTool(mcp.NewTool("block"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.running <- ctx
		<-ctx.Done()
		return mcp.NewToolResultText("ended: " + context.Cause(ctx).Error()), nil
	})
	s.dispatcher = transport.NewDispatcher(tools, logger)
	cfg := Config{
		Verifier: verify, PublicURL: "https://cells.example.com", Version: "1.2.3", Logger: logger, Issuer: "https://issuer.example",
		AllowedOrigins: []string{"https://app.example.com"}, Scopes: []string{"python:execute"},
		Drain: s.dispatcher.Drain, Cancel: s.dispatcher.Cancel,
		Health: func(context.Context) Health { s.looks.Add(1); return s.health },
		MCP: transport.NewHTTP(s.dispatcher, transport.HTTPConfig{MaxBody: 1000, Logger: logger, Owner: func(r *http.Request) string {
			p, _ := auth.FromContext(r.Context())
			return p.Owner()
		}}),
	}
	for _, c := range change {
		c(&cfg)
	}
	s.handler = New(cfg)
	t.Cleanup(func() {
		if err := s.dispatcher.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request past the network, as if it had come over a loopback connection.
func (s *site) ask(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost:8787/", strings.NewReader(body))
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8787}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, r)
	return rec
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

var asAnn = []string{"Authorization", "Bearer token-of-ann", "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}

// TestEveryRouteIsGuarded walks the table: every path, by every gate.
func TestEveryRouteIsGuarded(t *testing.T) {
	s := newSite(t)
	table := s.handler.(*handler).cfg.routes(epoch, newShares(0, 0))
	open := map[string]bool{"/": true, "/health": true, "/ready": true, MetadataPath: true, MetadataPath + "/mcp": true}
	if len(table) != len(open)+1 {
		t.Errorf("%d routes: tell this test which of the new ones are open", len(table))
	}
	for _, route := range table {
		if (route.access == anybody) != open[route.path] || route.access == "" {
			t.Errorf("%s: access %q", route.path, route.access)
		}
		methods := route.methods
		if methods == nil {
			methods = []string{"POST", "GET", "DELETE", "PUT", "OPTIONS"}
		}
		for _, method := range methods {
			if got := s.ask(method, route.path, ping); (got.Code == 401) == open[route.path] {
				t.Errorf("%s %s without a token: %d", method, route.path, got.Code)
			}
			if got := s.ask(method, route.path, ping, "Authorization", "Bearer wrong"); !open[route.path] && got.Code != 401 {
				t.Errorf("%s %s with a wrong token: %d", method, route.path, got.Code)
			}
			for _, evil := range [][]string{{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Host", "evil.example"}} {
				if got := s.ask(method, route.path, ping, append(evil, asAnn...)...); got.Code != 403 {
					t.Errorf("%s %s with %v: %d", method, route.path, evil, got.Code)
				}
			}
			checkHeaders(t, method+" "+route.path, s.ask(method, route.path, ping, asAnn...))
		}
		if route.methods != nil {
			got := s.ask("DELETE", route.path, "")
			if got.Code != 405 || got.Header().Get("Allow") != strings.Join(route.methods, ", ") {
				t.Errorf("DELETE %s: %d, Allow %q", route.path, got.Code, got.Header().Get("Allow"))
			}
		}
	}
}

func checkHeaders(t *testing.T, what string, got *httptest.ResponseRecorder) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got.Header().Get(name) != want {
			t.Errorf("%s: %s is %q", what, name, got.Header().Get(name))
		}
	}
	if csp := got.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("%s: Content-Security-Policy is %q", what, csp)
	}
}

func TestPathTricks(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/mcp/", "//mcp", "/mcp/../mcp", "/./mcp", "/MCP", "/mcp\x00", "/mcp%2f", "/mcp;x", "/mcp.json", "/x/../health", "/health/",
		"", "*", "/etc/passwd", "/../../etc/passwd", "/.well-known", "/sse", "/v1"} {
		got := s.ask("POST", path, ping, asAnn...)
		if got.Code != 404 || !strings.Contains(got.Body.String(), "https://cells.example.com/mcp") || !json.Valid(got.Body.Bytes()) {
			t.Errorf("%q: %d %s", path, got.Code, got.Body)
		}
	}
	if got := s.ask("POST", "/mcp?access_token=token-of-ann", ping, asAnn[2:]...); got.Code != 401 {
		t.Errorf("a token in the query: %d", got.Code)
	}
}

func TestMCPBehindTheToken(t *testing.T) {
	s := newSite(t)
	got := s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, asAnn...)
	session := got.Header().Get("Mcp-Session-Id")
	if got.Code != 200 || session == "" {
		t.Fatalf("initialize: %d %s", got.Code, got.Body)
	}
	if got := s.ask("POST", "/mcp", ping, append([]string{"Mcp-Session-Id", session}, asAnn...)...); got.Code != 200 {
		t.Errorf("ping: %d %s", got.Code, got.Body)
	}
	asBob := slices.Clone(asAnn)
	asBob[1] = "Bearer token-of-bob"
	if got := s.ask("POST", "/mcp", ping, append([]string{"Mcp-Session-Id", session}, asBob...)...); got.Code != 404 {
		t.Errorf("another's session: %d %s", got.Code, got.Body)
	}
	if got := s.ask("POST", "/mcp", ping+strings.Repeat(" ", 1000), asAnn...); got.Code != 413 {
		t.Errorf("a large body: %d %s", got.Code, got.Body)
	}
	got = s.ask("POST", "/mcp", ping)
	if challenge := got.Header().Get("WWW-Authenticate"); !strings.Contains(challenge, `resource_metadata="https://cells.example.com`+MetadataPath+`/mcp"`) {
		t.Errorf("challenge: %s", challenge)
	}
	for _, host := range []string{"cells.example.com", "localhost"} { // behind a proxy on this machine, and directly
		if got := s.ask("POST", "/mcp", ping, append([]string{"Host", host, "Origin", "https://cells.example.com"}, asAnn...)...); got.Code != 200 {
			t.Errorf("host %s: %d %s", host, got.Code, got.Body)
		}
	}
}

func TestMetadata(t *testing.T) {
	for _, path := range []string{MetadataPath, MetadataPath + "/mcp"} {
		got := newSite(t).ask("GET", path, "")
		want := `{"resource":"https://cells.example.com/mcp","authorization_servers":["https://issuer.example"],"scopes_supported":["python:execute"],"bearer_methods_supported":["header"],"resource_name":"cellblock"}`
		if got.Code != 200 || strings.TrimSpace(got.Body.String()) != want {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
		dev := newSite(t, func(c *Config) { c.Issuer = ""; c.Bearer.ResourceMetadata = "https://nowhere.example" })
		if got := dev.ask("GET", path, ""); got.Code != 404 {
			t.Errorf("%s without an issuer: %d", path, got.Code)
		}
		if got := dev.ask("POST", "/mcp", ping); strings.Contains(got.Header().Get("WWW-Authenticate"), "resource_metadata") {
			t.Errorf("a challenge that names metadata that is not there: %s", got.Header().Get("WWW-Authenticate"))
		}
	}
}

func TestHealth(t *testing.T) {
	s := newSite(t)
	got := s.ask("GET", "/health", "")
	if want := `{"status":"ok","version":"1.2.3","uptime_seconds":0}`; got.Code != 200 || strings.TrimSpace(got.Body.String()) != want {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	for range 100 {
		s.ask("GET", "/health", "")
	}
	if n := s.looks.Load(); n != 1 {
		t.Errorf("looked %d times for 100 requests in a moment", n)
	}
	if got := s.ask("GET", "/health", "", "Authorization", "Bearer token-of-ann"); got.Code != 200 || !strings.Contains(got.Body.String(), `"provisioner":"fake"`) {
		t.Errorf("with a token: %d %s", got.Code, got.Body)
	}
	if got := s.ask("GET", "/health", "", "Authorization", "Bearer wrong"); got.Code != 401 {
		t.Errorf("with a wrong token: %d %s", got.Code, got.Body)
	}
	for status, code := range map[string]int{"degraded": 200, Down: 503} {
		s := newSite(t)
		s.health.Status = status
		if got := s.ask("GET", "/health", ""); got.Code != code || !strings.Contains(got.Body.String(), status) {
			t.Errorf("%s: %d %s", status, got.Code, got.Body)
		}
	}
}

func TestIndex(t *testing.T) {
	s := newSite(t, func(c *Config) { c.PublicURL = `https://cells.example.com/"><script>` })
	got := s.ask("GET", "/", "", "Accept", "text/html,*/*")
	body := got.Body.String()
	if got.Code != 200 || !strings.Contains(body, "claude mcp add") || strings.Contains(body, "<script>") {
		t.Errorf("%d %s", got.Code, body)
	}
	if csp := got.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "style-src 'sha256-") {
		t.Errorf("policy: %s", csp)
	}
	if got := s.ask("GET", "/", ""); got.Header().Get("Content-Type") != "application/json" || !strings.Contains(got.Body.String(), `"mcp"`) {
		t.Errorf("for a program: %s", got.Body)
	}
	if got := s.ask("POST", "/", ping, asAnn...); got.Code != 405 || !strings.Contains(got.Body.String(), "/mcp") {
		t.Errorf("POST /: %d %s", got.Code, got.Body)
	}
}

func TestOtherOrigins(t *testing.T) {
	s := newSite(t)
	got := s.ask("OPTIONS", "/mcp", "", "Origin", "https://app.example.com", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization, content-type, mcp-protocol-version, mcp-param-region")
	if h := got.Header(); got.Code != 204 || h.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "mcp-param-region") || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %d %v", got.Code, h)
	}
	got = s.ask("POST", "/mcp", ping, append([]string{"Origin", "https://app.example.com"}, asAnn...)...)
	if h := got.Header(); got.Code != 200 || h.Get("Access-Control-Allow-Origin") != "https://app.example.com" || h.Get("Vary") != "Origin" ||
		!strings.Contains(h.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("call: %d %v", got.Code, h)
	}
	// Pages of this machine may call, as they always could, but read answers only where they are named.
	got = s.ask("POST", "/mcp", ping, append([]string{"Origin", "http://localhost:6274"}, asAnn...)...)
	if h := got.Header(); got.Code != 200 || h.Get("Access-Control-Allow-Origin") != "" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
		t.Errorf("an origin that nobody named: %d %v", got.Code, h)
	}
	if got := s.ask("OPTIONS", "/mcp", "", "Origin", "http://evil.example", "Access-Control-Request-Method", "POST"); got.Code != 403 || got.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("an evil preflight: %d %v", got.Code, got.Header())
	}
	got = s.ask("OPTIONS", "/mcp", "", "Origin", "https://app.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x\r\nSet-Cookie: y")
	if got.Header().Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("strange header names were echoed: %v", got.Header())
	}
}

// No token in a log.
func TestLogTellsWhoAndNeverTheToken(t *testing.T) {
	s := newSite(t)
	s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"msg":"secret code"}}}`, asAnn...)
	s.ask("POST", "/mcp?access_token=token-in-query", ping, "Authorization", "Bearer token-that-fails")
	s.ask("GET", "/"+strings.Repeat("x", 1000)+"\nlevel=ERROR", "")
	log := s.log.String()
	if !strings.Contains(log, "method=POST path=/mcp status=200") || !strings.Contains(log, "subject=ann") || !strings.Contains(log, "status=401") {
		t.Errorf("log: %s", log)
	}
	for _, secret := range []string{"token-of-ann", "token-in-query", "token-that-fails", "secret code", "\nlevel=ERROR", strings.Repeat("x", 300)} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q: %s", secret, log)
		}
	}
}

func TestPanics(t *testing.T) {
	begun := false
	s := newSite(t, func(c *Config) {
		c.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if begun {
				fmt.Fprint(w, "half of it")
			}
			panic("oh no")
		})
	})
	if got := s.ask("POST", "/mcp", ping, asAnn...); got.Code != 500 || strings.Contains(got.Body.String(), "oh no") || !json.Valid(got.Body.Bytes()) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if log := s.log.String(); !strings.Contains(log, "oh no") || !strings.Contains(log, "gates.go") {
		t.Errorf("log: %s", log)
	}
	begun = true
	defer func() {
		if reason := recover(); reason != http.ErrAbortHandler {
			t.Errorf("a begun answer went on after a panic: %v", reason)
		}
	}()
	s.ask("POST", "/mcp", ping, asAnn...)
}

// rawRequest writes a request as it goes over a connection.
func rawRequest(method, path, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", method, path, len(body))
	for i := 0; i < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	return b.String() + "\r\n" + body
}

func readResponse(t *testing.T, r io.Reader) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
