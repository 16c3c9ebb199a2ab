package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
)

// Whoever names the wrong server reads what is wrong, and not what an MCP client makes of it.
func TestWrongServers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + listener.Addr().String() + "/mcp"
	_ = listener.Close()
	answer := func(status int, form, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", form)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	page := answer(200, "text/html", "<html>")
	for _, tt := range []struct {
		name, url string
		exit      int
		want      string
	}{
		{"nobody listens", nobody, 69, "cellblock serve"},
		{"no such host", "http://nobody.invalid/mcp", 69, "there is no host nobody.invalid"},
		{"a web page", page, 69, "no cellblock server: status 200"},
		{"a method that is not allowed", answer(501, "text/html", "<html>"), 69, "no cellblock server: status 501"},
		{"an API of others", answer(404, "application/json", `{"detail":"Not Found"}`), 69, "no cellblock server: status 404"},
		{"a proxy with a limit", answer(413, "text/html", "<html>"), 69, "client_max_body_size"},
		{"a proxy before nothing", answer(502, "text/html", "<html>"), 69, "has no answer of the server: status 502"},
		{"https asked of http", strings.Replace(page, "http:", "https:", 1), 2, "Write it as " + page},
		{"http asked of https", strings.Replace(secure.URL, "https:", "http:", 1), 2, "Write it as " + secure.URL},
		{"an unknown authority", secure.URL, 69, "SSL_CERT_FILE"},
	} {
		_, err := dialMCP(t.Context(), tt.url, "token", func(mcp.JSONRPCNotification) {})
		if err == nil || fault.ExitCode(err) != tt.exit || !strings.Contains(fault.Text(err), tt.want) || strings.Contains(err.Error(), "transport error") {
			t.Errorf("%s: exit status %d: %s", tt.name, fault.ExitCode(err), fault.Text(err))
		}
	}
}
