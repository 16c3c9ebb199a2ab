package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/internal/fault"
)

func TestBodyIsBounded(t *testing.T) {
	w := newWorld(t, func(c *HTTPConfig) { c.MaxBody = 1000 })
	u := w.user("ann", handshake)
	fits := u.toolCall(1, "echo", map[string]any{"msg": strings.Repeat("x", 500)})
	fits += strings.Repeat(" ", 1000-len(fits))
	if got := u.post(fits); got.status != 200 || len(got.last().text()) != 500 {
		t.Errorf("a body of exactly the limit: %d %s", got.status, got.body)
	}
	for name, body := range map[string]io.Reader{
		"known length":   strings.NewReader(fits + " "),
		"unknown length": io.LimitReader(endless{}, 1<<40),
	} {
		r, _ := http.NewRequest(http.MethodPost, w.url, body)
		r.Header = u.request(t.Context(), "").Header
		got := u.do(r)
		if got.status != 413 || got.last().Error == nil || !strings.Contains(got.last().Error.Message, "larger than 1000 bytes") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// endless is a body that a server must not read to its end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestContentTypeAndEncoding(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", handshake)
	for contentType, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;x": 200,
		"text/plain": 415, "": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data": 415, "application/jsonx": 415,
	} {
		got := u.post(u.message(1, "ping", nil), func(r *http.Request) { r.Header.Set("Content-Type", contentType) })
		if got.status != status {
			t.Errorf("%q: %d %s", contentType, got.status, got.body)
		}
	}
	got := u.post(u.message(1, "ping", nil), func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
	if got.status != 415 {
		t.Errorf("gzip: %d", got.status)
	}
}

func TestRefusalsOverHTTP(t *testing.T) {
	w := newWorld(t)
	old, now := w.user("ann", handshake), w.user("ann", stateless)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set(name, value)
			if value == "" {
				r.Header.Del(name)
			}
		}
	}
	call := now.toolCall(3, "echo", nil)
	for _, tt := range []struct {
		name   string
		got    answer
		status int
		code   int
	}{
		{"not JSON", old.post("{"), 400, -32700},
		{"batch", old.post("[]"), 400, -32600},
		{"unknown tool", old.post(old.toolCall(3, "nope", nil)), 200, -32602},
		{"unknown method", old.post(old.message(3, "nope", nil)), 200, -32601},
		{"unknown session", old.post(old.message(3, "ping", nil), set("Mcp-Session-Id", "abc")), 404, -32600},
		{"unknown version", old.post(old.message(3, "ping", nil), set("MCP-Protocol-Version", "2020-01-01")), 400, -32022},
		{"discover without its version", old.post(old.message(3, "server/discover", nil)), 200, -32601},
		{"stateless unknown method", now.post(now.message(3, "nope", nil)), 404, -32601},
		{"stateless unknown tool", now.post(now.toolCall(3, "nope", nil)), 400, -32602},
		{"stateless initialize", now.post(now.message(3, "initialize", nil)), 404, -32601},
		{"version not in the header", now.post(call, set("MCP-Protocol-Version", "")), 400, -32020},
		{"version differs", now.post(call, set("MCP-Protocol-Version", "2025-11-25")), 400, -32020},
		{"version not in the body", now.post(old.toolCall(3, "echo", nil)), 400, -32602},
		{"future version", w.user("ann", "2099-01-01").post(strings.ReplaceAll(call, stateless, "2099-01-01"), set("MCP-Protocol-Version", "2099-01-01")), 400, -32022},
		{"method differs", now.post(call, set("Mcp-Method", "tools/list")), 400, -32020},
		{"method missing", now.post(call, set("Mcp-Method", "")), 400, -32020},
		{"name differs", now.post(call, set("Mcp-Name", "block")), 400, -32020},
		{"name missing", now.post(call, set("Mcp-Name", "")), 400, -32020},
		{"Last-Event-ID", now.post(call, set("Last-Event-ID", "1")), 400, -32020},
		{"no capabilities", now.post(strings.Replace(call, "clientCapabilities", "other", 1)), 400, -32602},
		{"stateless response", now.post(`{"jsonrpc":"2.0","id":1,"result":{}}`), 400, -32600},
	} {
		if e := tt.got.last().Error; tt.got.status != tt.status || e == nil || e.Code != tt.code {
			t.Errorf("%s: %d %s, want %d %d", tt.name, tt.got.status, tt.got.body, tt.status, tt.code)
		}
	}
	if got := now.post(call, set("Mcp-Session-Id", "abc")); got.status != 200 {
		t.Errorf("a stateless call with some session id: %d %s", got.status, got.body)
	}
	if got := old.post(`{"jsonrpc":"2.0","id":1,"result":{}}`); got.status != 202 || got.body != "" {
		t.Errorf("a response: %d %s", got.status, got.body)
	}
	none := w.user("ann", stateless)
	none.version = "2025-03-26"
	if got := none.post(none.toolCall(1, "echo", map[string]any{"msg": "hi"}), set("MCP-Protocol-Version", "")); got.last().text() != "hi" {
		t.Errorf("a call without a session: %d %s", got.status, got.body)
	}
}

func TestLargeIdIsEchoedAsWritten(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"12345678901234567890", `"a\u00e9<"`, "-1", "0"} {
		got := w.user("ann", stateless).post(strings.Replace(w.user("ann", stateless).toolCall(777, "echo", nil), "777", id, 1))
		var want, have any
		_ = mcpDecode(id, &want)
		_ = mcpDecode(string(got.last().ID), &have)
		if want != have || (id[0] != '"' && string(got.last().ID) != id) {
			t.Errorf("%s came back as %s (%d %s)", id, got.last().ID, got.status, got.body)
		}
	}
}

func TestGuard(t *testing.T) {
	loopback, public := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8787}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8787}
	g := NewGuard([]string{"https://App.example.com:443", "http://tools.example.com:8080"}, []string{"cells.example.com", "other.example.com:99"})
	for _, tt := range []struct {
		local        net.Addr
		host, origin string
		allowed      bool
	}{
		{loopback, "127.0.0.1:8787", "", true},
		{loopback, "localhost:8787", "", true},
		{loopback, "LOCALHOST", "", true},
		{loopback, "[::1]:8787", "", true},
		{loopback, "127.0.0.2", "", true},
		{loopback, "cells.example.com", "", true},
		{loopback, "Cells.example.com:443", "", true},
		{loopback, "other.example.com:99", "", true},
		{loopback, "other.example.com:98", "", false},
		{loopback, "evil.example:8787", "", false},
		{loopback, "localhost.evil.example", "", false},
		{loopback, "127.0.0.1.evil.example", "", false},
		{loopback, "127.0.0.1@evil.example", "", false},
		{loopback, "", "", false},
		{loopback, "0.0.0.0:8787", "", false},
		{public, "evil.example", "", true},
		{nil, "evil.example", "", true},
		{public, "x", "http://evil.example", false},
		{public, "x", "null", false},
		{public, "x", "", true},
		{public, "x", "http://localhost:3000", true},
		{public, "x", "http://127.0.0.1", true},
		{public, "x", "https://[::1]:9", true},
		{public, "x", "https://app.example.com", true},
		{public, "x", "HTTPS://APP.example.com", true},
		{public, "x", "http://app.example.com", false},
		{public, "x", "https://app.example.com:444", false},
		{public, "x", "https://app.example.com.evil.example", false},
		{public, "x", "http://tools.example.com:8080", true},
		{public, "x", "http://localhost.evil.example", false},
		{public, "x", "http://localhost@evil.example", false},
		{public, "x", "http://localhost:3000, http://evil.example", false},
		{public, "x", "file://", false},
		{public, "x", "http://127.0.0.1.evil.example", false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Host = tt.host
		if tt.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
		}
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if err := g.Check(r); (err == nil) != tt.allowed {
			t.Errorf("host %q, origin %q: %v", tt.host, tt.origin, err)
		}
	}
	if !NewGuard([]string{"*"}, nil).AllowsOrigin("http://any.example") {
		t.Error("* does not allow any")
	}
	two := httptest.NewRequest("POST", "/", nil)
	two.Header["Origin"] = []string{"http://localhost", "http://evil.example"}
	if g.Check(two) == nil {
		t.Error("a second Origin header was not looked at")
	}
}

func TestEvilOriginAndHostOverHTTP(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", handshake)
	for name, change := range map[string]func(*http.Request){
		"origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"host":   func(r *http.Request) { r.Host = "evil.example" },
	} {
		if got := u.post(u.message(1, "ping", nil), change); got.status != 403 || got.last().Error == nil {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// slowRecorder is a response writer whose reader can be looked over the shoulder.
type slowRecorder struct {
	mu     sync.Mutex
	header http.Header
	status int
	body   strings.Builder
	err    error
}

func (s *slowRecorder) Header() http.Header { return s.header }
func (s *slowRecorder) Flush()              {}
func (s *slowRecorder) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}
func (s *slowRecorder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	return s.body.Write(p)
}
func (s *slowRecorder) seen() (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.body.String()
}

func TestKeepAlive(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		synctest.Test(t, func(t *testing.T) {
			calls := make(chan *blocked, 1)
			d := NewDispatcher(newServer(calls), nil)
			h := NewHTTP(d, HTTPConfig{})
			u := &user{w: &world{t: t}, version: version}
			rec := &slowRecorder{header: http.Header{}}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				h.ServeHTTP(rec, u.request(t.Context(), u.toolCall(1, "block", nil)))
			}()
			call := <-calls
			time.Sleep(streamAfter - time.Millisecond)
			synctest.Wait()
			if status, body := rec.seen(); status != 0 || body != "" {
				t.Errorf("within a moment: %d %q", status, body)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			status, body := rec.seen()
			if n := strings.Count(body, ": the call goes on\n\n"); status != 200 || n != int(time.Minute/DefaultKeepAlive) {
				t.Errorf("after a minute: %d, %d comments in %q", status, n, body)
			}
			close(call.release)
			<-answered
			time.Sleep(time.Hour) // no timer is left to write
			synctest.Wait()
			_, after := rec.seen()
			if rest := after[len(body):]; !strings.HasPrefix(rest, "event: message\ndata: ") || !strings.HasSuffix(rest, "}\n\n") || strings.Count(rest, "\n\n") != 1 {
				t.Errorf("the end: %q", rest)
			}
		})
	}
}

func TestNotifyWhereNobodyListens(t *testing.T) {
	if err := Notify(t.Context(), "x", nil); !errors.Is(err, ErrNoStream) {
		t.Errorf("outside of a request: %v", err)
	}
	var handler context.Context
	s := server.NewMCPServer("probe", "1")
	s.AddTool(mcp.NewTool("t"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		handler = ctx
		if err := Notify(ctx, "x", map[string]any{"f": func() {}}); err == nil || errors.Is(err, ErrNoStream) {
			t.Errorf("params that are no JSON: %v", err)
		}
		return mcp.NewToolResultText(fmt.Sprint(errors.Is(Notify(ctx, "x", nil), ErrNoStream))), nil
	})
	d := NewDispatcher(s, nil)
	h := NewHTTP(d, HTTPConfig{})
	u := &user{w: &world{t: t}, version: stateless}
	rec := &slowRecorder{header: http.Header{}, err: errors.New("connection reset")}
	h.ServeHTTP(rec, u.request(t.Context(), u.toolCall(1, "t", nil)))
	if err := Notify(handler, "x", nil); !errors.Is(err, ErrNoStream) {
		t.Errorf("after the answer: %v", err)
	}
	rec.err = nil
	h.ServeHTTP(rec, u.request(t.Context(), u.toolCall(1, "t", nil)))
	if _, body := rec.seen(); !strings.Contains(body, `"method":"x"`) || !strings.Contains(body, "false") {
		t.Errorf("to a client that listens: %q", body)
	}
}

func TestNotificationsOfMcpGoItselfArriveToo(t *testing.T) {
	w := newWorld(t)
	w.mcp.AddTool(mcp.NewTool("upstream", mcp.WithDescription("uses mcp-go's own function")),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 100 {
				if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progress": i + 1}); err != nil {
					return mcp.NewToolResultError(err.Error()), nil
				}
			}
			return mcp.NewToolResultText("done"), nil
		})
	u := w.user("ann", handshake)
	if got := u.post(u.toolCall(1, "upstream", nil)); len(got.messages) != 101 || got.last().text() != "done" || got.messages[99].Params.Progress != 100 {
		t.Errorf("%d messages: %s", len(got.messages), got.body)
	}
}

func TestSubscriptionsListen(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", stateless)
	listen := func(filter map[string]any) string {
		return u.message("sub", "subscriptions/listen", map[string]any{"notifications": filter})
	}
	got := u.post(listen(map[string]any{}))
	if len(got.messages) != 2 || got.messages[0].Method != "notifications/subscriptions/acknowledged" || got.last().Error != nil {
		t.Errorf("nothing to listen for: %s", got.body)
	}
	resp, err := u.client.Do(u.request(t.Context(), listen(map[string]any{"toolsListChanged": true})))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // the acknowledgement has opened the stream
	w.mcp.AddTool(mcp.NewTool("new", mcp.WithDescription("new")), nil)
	w.mcp.SendNotificationToAllClients("notifications/other", nil) // not asked for
	w.d.Drain()
	got = readAnswer(t, resp)
	if len(got.messages) != 3 || got.messages[1].Method != "notifications/tools/list_changed" || got.messages[1].Params.Meta[mcp.MetaKeySubscriptionID] != "sub" {
		t.Errorf("listening: %s", got.body)
	}
}

func TestAnIdMayBeUsedAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	u := w.user("ann", handshake)
	for range 300 {
		if got := u.post(u.toolCall(1, "echo", nil)); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	c := newPipeClient(t, w)
	for range 300 {
		c.send(stdioCall(1, "echo", nil))
		if got := c.receive(); got.Error != nil {
			t.Fatalf("stdio: %+v", got)
		}
	}
}

// Whoever bounds what comes at the same time is heard: the client is told to send it again, and not that it was cut off.
func TestABodyThatIsTooMuchNow(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", iotest.ErrReader(fault.New(fault.Busy, "too much").WithHint("Send it again.")))
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	if got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body.String(), "Send it again.") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}
