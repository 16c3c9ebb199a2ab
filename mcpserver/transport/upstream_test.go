package transport

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// These tests show what mcp-go's own Streamable HTTP transport does, one defect each: the reasons for this package. One
// that fails says that upstream has mended something, and what of ours can go.

func mended(t *testing.T, what, ours string) {
	t.Helper()
	t.Errorf("upstream has mended %q, our workaround in %s can go", what, ours)
}

// newUpstream puts mcp-go's transport where newWorld puts ours.
func newUpstream(t *testing.T, o ...server.StreamableHTTPOption) *world {
	w := &world{t: t, calls: make(chan *blocked, 64)}
	w.mcp = newServer(w.calls)
	w.mcp.AddTool(mcp.NewTool("chatty", mcp.WithDescription("sends notifications by mcp-go's means")), chatty)
	h := server.NewStreamableHTTPServer(w.mcp, o...)
	w.handler, w.url = h, serve(t, h)
	t.Cleanup(func() { h.CloseSessions(context.Background()) })
	return w
}

// chatty sends n notifications by mcp-go's means, and with "yield" gives its forwarder a turn between two of them.
func chatty(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	failed := 0
	for i := range r.GetInt("n", 1) {
		err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress",
			map[string]any{"progress": i + 1, "message": r.GetString("label", "")})
		if err != nil {
			failed++
		}
		if r.GetBool("yield", false) && i+1 < r.GetInt("n", 1) {
			time.Sleep(time.Millisecond)
		}
	}
	return mcp.NewToolResultText(fmt.Sprint(failed)), nil
}

func (u *user) chatty(id any, n int, label string, yield bool) answer {
	return u.post(u.toolCall(id, "chatty", map[string]any{"n": n, "label": label, "yield": yield}))
}

// from counts the notifications of a label.
func (a answer) from(label string) (n int) {
	for _, m := range a.messages {
		if m.Method != "" && m.Params.Message == label {
			n++
		}
	}
	return n
}

func TestUpstreamCancelReachesOtherClients(t *testing.T) {
	w := newUpstream(t, server.WithStateLess(true))
	victim, other := w.user("ann", stateless), w.user("bob", stateless)
	_, call := victim.start(5, "victim")
	other.post(strings.Replace(other.message(0, "notifications/cancelled", map[string]any{"requestId": 5}), `"id":0,`, "", 1))
	if context.Cause(call.ctx) == nil {
		close(call.release)
		mended(t, "notifications/cancelled of one client cancels another's call", "exchange.take")
	}
}

func TestUpstreamGetOverhearsOthers(t *testing.T) {
	w := newUpstream(t, server.WithStateLess(true))
	victim, mallory := w.user("ann", stateless), w.user("bob", stateless)
	victim.version = handshake
	r := mallory.request(t.Context(), "")
	r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0
	r.Header.Set("MCP-Protocol-Version", handshake)
	resp, err := mallory.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	heard := make(chan bool, 1)
	go func() {
		s := bufio.NewScanner(resp.Body)
		for s.Scan() {
			if strings.Contains(s.Text(), "secret of ann") {
				heard <- true
				return
			}
		}
		heard <- false
	}()
	for i := range 20 {
		victim.chatty(i, 20, "secret of ann", true)
		select {
		case <-heard:
			return
		default:
		}
	}
	mended(t, "a stateless GET receives another client's notifications", "httpHandler.ServeHTTP (GET is refused)")
	resp.Body.Close()
	<-heard
}

func TestUpstreamMixesProgressOfConcurrentCalls(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	u := w.user("ann", handshake)
	for round := range 20 {
		var wg sync.WaitGroup
		got := make([]answer, 2)
		for i, label := range []string{"a", "b"} {
			wg.Go(func() { got[i] = u.chatty(fmt.Sprint(round, label), 20, label, true) })
		}
		wg.Wait()
		if got[0].from("b")+got[1].from("a") > 0 {
			return
		}
	}
	mended(t, "two calls of one session get each other's progress", "outlet (each request has its own)")
}

func TestUpstreamLosesTheLastNotification(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	u := w.user("ann", handshake)
	for i := range 300 {
		if n := 1 + i%20; u.chatty(i, n, "last", i%2 == 0).from("last") < n {
			return
		}
	}
	mended(t, "a notification sent just before the result is lost", "Notify")
}

func TestUpstreamDropsBursts(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	if got := w.user("ann", handshake).chatty(1, 2000, "burst", false); got.from("burst") == 2000 {
		mended(t, "a burst of notifications fails with ErrNotificationChannelBlocked", "Notify")
	}
}

func TestUpstreamDisconnectCancelsHandshakeCalls(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	pending, call := w.user("ann", handshake).start(5, "left alone")
	probe, seen := w.user("ann", stateless).start(1, "probe")
	pending.drop()
	<-pending.answer
	probe.drop()
	await(t, seen.ended)
	select {
	case <-call.ended:
	case <-time.After(5 * time.Second):
		close(call.release)
		mended(t, "a lost connection cancels a call of a handshake revision", "exchange.answer (context.WithoutCancel)")
	}
}

func TestUpstreamAcceptsForeignOrigins(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	u := w.user("ann", handshake)
	got := u.post(u.message(1, "ping", nil), func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") })
	if got.status != http.StatusOK {
		mended(t, "Origin is not checked", "Guard.Check")
	}
}

func TestUpstreamSessionsBelongToNobody(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	ann, bob := w.user("ann", handshake), w.user("bob", handshake)
	bob.session = ann.session
	if got := bob.post(bob.message(1, "ping", nil)); got.status != http.StatusOK {
		mended(t, "a session answers to any bearer", "SessionKey")
	}
}

func TestUpstreamIgnoresAccept(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	u := w.user("ann", handshake)
	if got := u.post(u.message(1, "ping", nil), func(r *http.Request) { r.Header.Set("Accept", "image/png") }); got.status != http.StatusOK {
		mended(t, "Accept is not checked", "accepted")
	}
}

func TestUpstreamKeepsEverySession(t *testing.T) {
	w := newUpstream(t)
	u := &user{w: w, owner: "ann", version: handshake}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n = 1000
	before := heap()
	for i := range n {
		body := u.message(i, "initialize", map[string]any{"protocolVersion": handshake, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "c", "version": "1"}})
		if rec := serveLocally(w.handler, u.request(t.Context(), body)); rec.Code != 200 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
	if grown := int64(heap()) - int64(before); grown < n*2000 {
		mended(t, "initialize takes memory that is never given back", "SessionKey and lru")
	}
	runtime.KeepAlive(w)
}

func TestUpstreamTasksAreCancelledAtOnce(t *testing.T) {
	s := server.NewMCPServer("probe", "1", server.WithTaskCapabilities(true, true, true))
	ended := make(chan error, 1)
	release := make(chan struct{})
	s.AddTaskTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportRequired)),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
			select {
			case <-ctx.Done():
			case <-release:
			}
			ended <- ctx.Err()
			return &mcp.CreateTaskResult{}, ctx.Err()
		})
	s.HandleMessage(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task","task":{}}}`))
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		close(release)
		mended(t, "a task's context ends when it has been created", "the tools (no tasks are offered)")
	}
}

func TestUpstreamListenNeverCarriesResourceUpdates(t *testing.T) {
	w := newUpstream(t)
	var session any
	listen := server.NewMCPServer("probe", "1", server.WithResourceCapabilities(true, true), server.WithHooks(&server.Hooks{
		OnBeforeSubscriptionsListen: []server.OnBeforeSubscriptionsListenFunc{func(ctx context.Context, _ any, _ *mcp.SubscriptionsListenRequest) {
			session = server.ClientSessionFromContext(ctx)
		}},
	}))
	h := server.NewStreamableHTTPServer(listen)
	u := &user{w: w, version: stateless}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the subscription ends as soon as it has begun
	h.ServeHTTP(httptest.NewRecorder(), u.request(ctx, u.message(1, "subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"a://b"}}})))
	if _, ok := session.(server.SessionWithResourceSubscriptions); ok || session == nil {
		mended(t, "an HTTP session does not record resource subscriptions", "nothing yet: ours does not either")
	}
}

func TestUpstreamHasNoKeepAliveOnPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan *blocked, 1)
		h := server.NewStreamableHTTPServer(newServer(calls), server.WithHeartbeatInterval(time.Second))
		u := &user{w: &world{t: t}, version: stateless}
		rec := &slowRecorder{header: http.Header{}}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			h.ServeHTTP(rec, u.request(t.Context(), u.toolCall(1, "block", nil)))
		}()
		call := <-calls
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, body := rec.seen(); body != "" {
			mended(t, "nothing is written while a call runs", "httpResponse.tick")
		}
		close(call.release)
		<-answered
	})
}
