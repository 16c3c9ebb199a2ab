package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mark3labs/mcp-go/server"
)

// BenchmarkToolCall is what a tool call costs over HTTP on loopback, beside mcp-go's own transport.
func BenchmarkToolCall(b *testing.B) {
	s := newServer(nil)
	for name, h := range map[string]http.Handler{
		"ours":     NewHTTP(NewDispatcher(s, nil), HTTPConfig{}),
		"upstream": server.NewStreamableHTTPServer(s, server.WithStateLess(true)),
	} {
		b.Run(name, func(b *testing.B) {
			srv := httptest.NewServer(h)
			defer srv.Close()
			u := &user{w: &world{url: srv.URL}, version: stateless, owner: "ann"}
			body := u.toolCall(1, "echo", map[string]any{"msg": "1+1"})
			b.ReportAllocs()
			for b.Loop() {
				resp, err := srv.Client().Do(u.request(b.Context(), body))
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
