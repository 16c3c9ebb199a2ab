package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/mcpserver/transport"
)

// httpClient is a client of one revision of MCP over HTTP.
type httpClient struct {
	t                     *testing.T
	url, version, session string
	capabilities          map[string]any
}

func dial(t *testing.T, url, version string) *httpClient {
	t.Helper()
	return dialAs(t, url, version, map[string]any{})
}

// dialAs is dial for a client that can do something.
func dialAs(t *testing.T, url, version string, capabilities map[string]any) *httpClient {
	t.Helper()
	c := &httpClient{t: t, url: url, version: version, capabilities: capabilities}
	if version < mcp.ProtocolVersion20260728 {
		resp := c.do(t.Context(), 1, "initialize", map[string]any{"protocolVersion": version, "capabilities": capabilities,
			"clientInfo": map[string]any{"name": "t", "version": "1"}})
		c.session = resp.Header.Get("Mcp-Session-Id")
		_ = resp.Body.Close()
	}
	return c
}

func (c *httpClient) do(ctx context.Context, id int, method string, params map[string]any) *http.Response {
	c.t.Helper()
	modern := c.version >= mcp.ProtocolVersion20260728
	if modern {
		params["_meta"] = map[string]any{mcp.MetaKeyProtocolVersion: c.version, mcp.MetaKeyClientCapabilities: c.capabilities,
			mcp.MetaKeyClientInfo: map[string]any{"name": "t", "version": "1"}}
	}
	message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id > 0 {
		message["id"] = id
	}
	return c.post(ctx, message)
}

// post sends a message of any kind.
func (c *httpClient) post(ctx context.Context, message map[string]any) *http.Response {
	c.t.Helper()
	modern := c.version >= mcp.ProtocolVersion20260728
	body, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.session != "" || modern {
		r.Header.Set("MCP-Protocol-Version", c.version)
	}
	if modern {
		r.Header.Set("Mcp-Method", message["method"].(string))
		for _, key := range []string{"name", "uri"} {
			if name, ok := message["params"].(map[string]any)[key].(string); ok {
				r.Header.Set("Mcp-Name", name)
			}
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	return resp
}

// call calls a tool and returns its result's texts and links.
func (c *httpClient) call(ctx context.Context, id int, tool string, args map[string]any) string {
	c.t.Helper()
	resp := c.do(ctx, id, "tools/call", map[string]any{"name": tool, "arguments": args})
	if resp == nil {
		return "cut off"
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "cut off"
	}
	if at := bytes.LastIndex(b, []byte("data: ")); at >= 0 {
		b = b[at+len("data: "):]
	}
	var m struct {
		Result struct {
			Content []struct{ Type, Text, URI string }
		}
		Error struct{ Message string }
	}
	if err := json.Unmarshal(b, &m); err != nil {
		c.t.Fatalf("%v in %s", err, b)
	}
	texts := m.Error.Message
	for _, block := range m.Result.Content {
		texts += block.Text + block.URI + "\n"
	}
	return texts
}

// serveHTTP serves a world's tools.
func serveHTTP(t *testing.T, w *world) string {
	t.Helper()
	w.service.notify = transport.Notify
	d := transport.NewDispatcher(w.server, w.service.Logger)
	srv := httptest.NewServer(transport.NewHTTP(d, transport.HTTPConfig{Logger: w.service.Logger}))
	t.Cleanup(func() {
		if err := w.service.Sessions.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
		w.kernels.StopAll()
	})
	return srv.URL
}

// A lost connection is a cancel in 2026-07-28 and none before; a cell that belongs to nobody goes on in both.
func TestLostConnections(t *testing.T) {
	for version, want := range map[string]struct{ waited, unwaited string }{
		mcp.ProtocolVersion20251125: {"a\nb\n[session waited · cell 1 · ok", "a\nb\n[session unwaited · cell 1 · ok"},
		mcp.ProtocolVersion20260728: {"cell 1 · cancelled", "a\nb\n[session unwaited · cell 1 · ok"},
	} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			c := dial(t, serveHTTP(t, w), version)
			execute := func(id int, session string, wait any) string {
				ctx, drop := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer drop()
				return c.call(ctx, id, "execute_python", map[string]any{"session_id": session, "code": "print a\nsleep 1s\nprint b", "wait_seconds": wait})
			}
			if got := execute(2, "waited", 30); got != "cut off" {
				t.Errorf("the connection was not lost: %s", got)
			}
			if got := execute(3, "unwaited", 0); !strings.Contains(got, "read on with get_execution") {
				t.Errorf("wait 0: %s", got)
			}
			for session, want := range map[string]string{"waited": want.waited, "unwaited": want.unwaited} {
				got := c.call(t.Context(), 4, "get_execution", map[string]any{"session_id": session, "execution_id": 1})
				if !strings.Contains(got, want) {
					t.Errorf("%s: %s", session, got)
				}
			}
		})
	}
}

func TestCancelledByNotification(t *testing.T) {
	w := newWorld(t)
	c := dial(t, serveHTTP(t, w), mcp.ProtocolVersion20251125)
	done := make(chan string, 1)
	go func() {
		done <- c.call(t.Context(), 7, "execute_python", map[string]any{"session_id": "s", "code": "print a\nwait"})
	}()
	for !strings.Contains(c.call(t.Context(), 8, "list_executions", map[string]any{"session_id": "s"}), "running") {
	}
	_ = c.do(t.Context(), 0, "notifications/cancelled", map[string]any{"requestId": 7}).Body.Close()
	if got := <-done; !strings.Contains(got, "cancelled") {
		t.Errorf("the call: %s", got)
	}
	if got := c.call(t.Context(), 9, "get_execution", map[string]any{"session_id": "s", "execution_id": 1}); !strings.Contains(got, "a\n") || !strings.Contains(got, "cell 1 · cancelled") {
		t.Errorf("afterwards: %s", got)
	}
}

// A tool that there is not is refused with the one that may be meant.
func TestUnknownToolIsToldTheNearest(t *testing.T) {
	w := newWorld(t)
	url := serveHTTP(t, w)
	for _, version := range []string{mcp.ProtocolVersion20251125, mcp.ProtocolVersion20260728} {
		got := dial(t, url, version).call(t.Context(), 2, "execute_pyton", map[string]any{"code": "1"})
		for _, part := range []string{"there is no tool", "execute_pyton", "did you mean execute_python?"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s", version, got)
			}
		}
		if got := dial(t, url, version).call(t.Context(), 4, "execute_julia", nil); !strings.Contains(got, "code runs by execute_python") {
			t.Errorf("%s: %s", version, got)
		}
		if got := dial(t, url, version).call(t.Context(), 3, "zzzzzz", nil); !strings.Contains(got, "there is no tool") || strings.Contains(got, "Hint") {
			t.Errorf("%s: %s", version, got)
		}
	}
}

// Only clients that know resource links get one, and what it leads to can be read in every revision.
func TestLinksByRevision(t *testing.T) {
	w := newWorld(t)
	url := serveHTTP(t, w)
	for version, linked := range map[string]bool{
		mcp.ProtocolVersion20250326: false, mcp.ProtocolVersion20250618: true, mcp.ProtocolVersion20251125: true, mcp.ProtocolVersion20260728: true,
	} {
		c := dial(t, url, version)
		id := "s" + version
		got := c.call(t.Context(), 2, "execute_python", map[string]any{"session_id": id, "code": "count 30000"})
		link := outputURI(id, 1)
		if strings.Contains(got, "\n"+link+"\n") != linked || !strings.Contains(got, "left out here; get_execution(") {
			t.Errorf("%s: %s", version, got[max(0, len(got)-300):])
		}
		for uri, code := range map[string]string{link: `"text":"0\n1\n`, "cellblock://sessions/nobody/executions/1/output": `"code":-3`} {
			resp := c.do(t.Context(), 3, "resources/read", map[string]any{"uri": uri})
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || !strings.Contains(string(b), code) {
				t.Errorf("%s: %s: %v %.300s", version, uri, err, b)
			}
			notFound := `"code":-32002`
			if version == mcp.ProtocolVersion20260728 {
				notFound = `"code":-32602`
			}
			if uri != link && !strings.Contains(string(b), notFound) {
				t.Errorf("%s: %s", version, b)
			}
		}
	}
}
