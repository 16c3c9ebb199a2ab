//go:build !race

// The race detector takes ten times as long for what is large, and finds nothing in it: all of it goes through one goroutine.

package transport

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A large resource is in memory once more while it is written, not several times.
func TestUnracedEncodeAllocatesOnce(t *testing.T) {
	response := resources(mcp.TextResourceContents{URI: "u", Text: strings.Repeat("0123456789\n", 2<<20)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := encode(response)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > uint64(len(got))*11/10 {
		t.Errorf("%d bytes took %d, %v", len(got), took, err)
	}
}

func TestUnracedInitializeCostsNoMemory(t *testing.T) {
	w := newWorld(t)
	u := &user{w: w, owner: "ann", version: handshake}
	shake := func(n int) {
		for i := range n {
			r := u.request(t.Context(), u.message(i, "initialize", map[string]any{"protocolVersion": handshake,
				"capabilities": map[string]any{}, "clientInfo": map[string]any{"name": fmt.Sprint("client ", i), "version": "1"}}))
			if rec := serveLocally(w.handler, r); rec.Code != 200 || rec.Header().Get("Mcp-Session-Id") == "" {
				t.Fatalf("initialize %d: %d %s", i, rec.Code, rec.Body)
			}
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	shake(rememberClients) // fills what is remembered
	before := heap()
	shake(20_000)
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("20,000 initialize calls cost %d bytes", grown)
	}
	runtime.KeepAlive(w)
}

func TestUnracedUpstreamReadsBodiesOfAnySize(t *testing.T) {
	w := newUpstream(t, server.WithStateful(true))
	u := w.user("ann", handshake)
	if got := u.post(u.message(1, "ping", nil) + strings.Repeat(" ", DefaultMaxBody)); got.status != http.StatusOK {
		mended(t, "a body has no limit", "httpHandler.readMessage")
	}
}
