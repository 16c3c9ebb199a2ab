package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	stateless = mcp.ProtocolVersion20260728
	handshake = mcp.ProtocolVersion20251125
)

// blocked is one call of the tool "block" that waits.
type blocked struct {
	label   string
	ctx     context.Context
	release chan struct{}
	ended   chan error // the cause, nil when it was released
}

// world is an MCP server with tools to observe, and the endpoint in front of it.
type world struct {
	t       *testing.T
	mcp     *server.MCPServer
	d       *Dispatcher
	calls   chan *blocked
	handler http.Handler
	url     string
	log     *lockedBuffer
}

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

func newWorld(t *testing.T, change ...func(*HTTPConfig)) *world {
	w := &world{t: t, calls: make(chan *blocked, 64), log: &lockedBuffer{}}
	w.mcp = newServer(w.calls)
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	w.d = NewDispatcher(w.mcp, logger)
	cfg := HTTPConfig{Owner: bearerOf, Logger: logger}
	for _, c := range change {
		c(&cfg)
	}
	w.handler = NewHTTP(w.d, cfg)
	w.url = serve(t, w.handler)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.d.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

// serve puts a handler on a loopback port.
func serve(t *testing.T, h http.Handler) (url string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func bearerOf(r *http.Request) string {
	owner, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return owner
}

func newServer(calls chan *blocked) *server.MCPServer {
	s := server.NewMCPServer("probe", "1", server.WithToolCapabilities(true), server.WithInstructions("for tests"))
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("says it again"), mcp.WithString("msg")),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(r.GetString("msg", "")), nil
		})
	s.AddTool(mcp.NewTool("progress", mcp.WithDescription("reports progress and returns at once"), mcp.WithNumber("n"), mcp.WithString("label")),
		func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var last error
			for i := range r.GetInt("n", 1) {
				last = Notify(ctx, "notifications/progress", map[string]any{"progress": i + 1, "message": r.GetString("label", "")})
			}
			return mcp.NewToolResultText(fmt.Sprintf("done, %v", last)), nil
		})
	s.AddTool(mcp.NewTool("block", mcp.WithDescription("waits"), mcp.WithString("label")),
		func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			b := &blocked{label: r.GetString("label", ""), ctx: ctx, release: make(chan struct{}), ended: make(chan error, 1)}
			calls <- b
			select {
			case <-b.release:
				b.ended <- nil
			case <-ctx.Done():
				b.ended <- context.Cause(ctx)
			}
			return mcp.NewToolResultText("unblocked " + b.label), nil
		})
	s.AddTool(mcp.NewTool("panic", mcp.WithDescription("panics")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("oh no") })
	s.AddTool(mcp.NewTool("whoami", mcp.WithDescription("what is known of the client")),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
			return mcp.NewToolResultText(c.GetClientInfo().Name + " " + server.RequestProtocolVersion(ctx)), nil
		})
	return s
}

// user is one client of one owner, by raw HTTP.
type user struct {
	w       *world
	owner   string
	version string
	session string
	client  *http.Client
}

// user returns a client that has shaken hands where its revision has it.
func (w *world) user(owner, version string) *user {
	w.t.Helper()
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	u := &user{w: w, owner: owner, version: version, client: &http.Client{Transport: transport}}
	if version >= stateless {
		return u
	}
	got := u.post(u.message(1, "initialize", map[string]any{"protocolVersion": version, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "client of " + owner, "version": "1"}}))
	if u.session = got.header.Get("Mcp-Session-Id"); got.status != 200 || u.session == "" {
		w.t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	if got := u.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); got.status != 202 {
		w.t.Fatalf("initialized: %d %s", got.status, got.body)
	}
	return u
}

// message writes a request as the user's revision wants it.
func (u *user) message(id any, method string, params map[string]any) string {
	if params == nil {
		params = map[string]any{}
	}
	if u.version >= stateless {
		params["_meta"] = map[string]any{mcp.MetaKeyProtocolVersion: u.version, mcp.MetaKeyClientCapabilities: map[string]any{},
			mcp.MetaKeyClientInfo: map[string]any{"name": "client of " + u.owner, "version": "1"}}
	}
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		u.w.t.Fatal(err)
	}
	return string(b)
}

func (u *user) toolCall(id any, tool string, args map[string]any) string {
	return u.message(id, "tools/call", map[string]any{"name": tool, "arguments": args})
}

// request builds the POST of a message, headers and all.
func (u *user) request(ctx context.Context, body string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.w.url, strings.NewReader(body))
	if err != nil {
		u.w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+u.owner)
	if u.session != "" {
		r.Header.Set("Mcp-Session-Id", u.session)
		r.Header.Set("MCP-Protocol-Version", u.version)
	}
	if u.version >= stateless {
		r.Header.Set("MCP-Protocol-Version", u.version)
		var m struct {
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal([]byte(body), &m)
		r.Header.Set("Mcp-Method", m.Method)
		if m.Params.Name != "" {
			r.Header.Set("Mcp-Name", m.Params.Name)
		}
	}
	return r
}

// answer is a whole HTTP answer, with the JSON-RPC messages in it.
type answer struct {
	status   int
	header   http.Header
	body     string
	messages []rpc
}

type rpc struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Progress int
		Message  string
		Meta     map[string]any `json:"_meta"`
	}
	Result struct {
		Content    []struct{ Text string }
		ResultType string
		Tools      []struct{ Name string }
		Meta       map[string]any `json:"_meta"`
	}
	Error *struct {
		Code    int
		Message string
		Data    any
	}
}

func (m rpc) text() string {
	if len(m.Result.Content) == 0 {
		return ""
	}
	return m.Result.Content[0].Text
}

// last returns the final message, the response.
func (a answer) last() rpc {
	if len(a.messages) == 0 {
		return rpc{}
	}
	return a.messages[len(a.messages)-1]
}

func (u *user) post(body string, change ...func(*http.Request)) answer {
	u.w.t.Helper()
	r := u.request(context.Background(), body)
	for _, c := range change {
		c(r)
	}
	return u.do(r)
}

func (u *user) do(r *http.Request) answer {
	u.w.t.Helper()
	resp, err := u.client.Do(r)
	if err != nil {
		u.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	return readAnswer(u.w.t, resp)
}

func readAnswer(t *testing.T, resp *http.Response) answer {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && len(b) > 0 {
		a.messages = append(a.messages, decode(t, b))
	}
	for line := range strings.Lines(a.body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			a.messages = append(a.messages, decode(t, []byte(data)))
		}
	}
	return a
}

func decode(t *testing.T, b []byte) (m rpc) {
	t.Helper()
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return m
}

// pending is a request whose answer is awaited elsewhere.
type pending struct {
	answer chan answer
	drop   context.CancelFunc // closes the connection
}

// start sends a call of "block" and waits until its handler runs.
func (u *user) start(id any, label string) (*pending, *blocked) {
	u.w.t.Helper()
	ctx, drop := context.WithCancel(context.Background())
	p := &pending{answer: make(chan answer, 1), drop: drop}
	u.w.t.Cleanup(drop)
	r := u.request(ctx, u.toolCall(id, "block", map[string]any{"label": label}))
	go func() {
		defer close(p.answer)
		resp, err := u.client.Do(r)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return
		}
		a := answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
		s := bufio.NewScanner(bytes.NewReader(b))
		for s.Scan() {
			if line := strings.TrimPrefix(s.Text(), "data: "); strings.HasPrefix(line, "{") {
				var m rpc
				_ = json.Unmarshal([]byte(line), &m)
				a.messages = append(a.messages, m)
			}
		}
		p.answer <- a
	}()
	return p, await(u.w.t, u.w.calls)
}

// await receives with a deadline that only a failing test reaches.
func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("waited for 10 s")
	}
	return v
}

// untouched fails if a call has been cancelled. Everything that could have done it has been answered by then, and
// cancelling is synchronous with that.
func (b *blocked) untouched(t *testing.T) {
	t.Helper()
	if err := context.Cause(b.ctx); err != nil {
		t.Fatalf("%s was cancelled: %v", b.label, err)
	}
}

func mcpDecode(raw string, v any) error { return json.Unmarshal([]byte(raw), v) }
