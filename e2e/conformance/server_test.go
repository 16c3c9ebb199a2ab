// Package conformance runs the official conformance suite of MCP against our whole middleware: the site with its gates,
// bearer tokens, our transport. Behind it are our tools, and the fixtures that the suite asks for.
package conformance

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"

	"cellblock/auth"
	"cellblock/kernels/kernelstest"
	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
	"cellblock/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer is an MCP server with our own tools as they are, and the fixtures. Ours are added to it by name, because
// mcpserver lists and calls nothing that its table of scopes does not have.
func newServer(t *testing.T) *server.MCPServer {
	t.Helper()
	kernels := kernelstest.NewProvisioner()
	manager, err := sessions.New(sessions.Config{
		Provisioner: kernels, DataDir: t.TempDir(), Runtimes: map[string]sessions.Runtime{"python": {}}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := manager.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		kernels.StopAll()
	})
	s := server.NewMCPServer("cellblock", "0", server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true),
		server.WithPromptCapabilities(true), server.WithCompletions(), server.WithPromptCompletionProvider(completions{}),
		server.WithCacheHints(60_000, mcp.CacheScopePrivate))
	ours := mcpserver.New(mcpserver.Config{Sessions: manager, Version: "0", Logger: quiet, Allowed: allowed, Owner: owner})
	for _, t := range ours.ListTools() {
		s.AddTool(t.Tool, t.Handler)
	}
	addFixtures(s)
	return s
}

var quiet = slog.New(slog.DiscardHandler)

func allowed(ctx context.Context, scope string) bool {
	p, ok := auth.FromContext(ctx)
	return ok && p.Has(scope)
}

func owner(ctx context.Context) (sessions.Owner, error) {
	p, _ := auth.FromContext(ctx)
	return sessions.Owner{Issuer: p.Issuer, Subject: p.Subject}, nil
}

// serve starts the site as cmd/cellblock does, and before it a proxy that adds a token, because the suite sends none.
// It returns the proxy's MCP endpoint.
func serve(t *testing.T) (endpoint string) {
	t.Helper()
	dev, err := auth.EnsureDev(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	token, err := dev.Mint(auth.TokenSpec{Subject: "suite", Scopes: auth.DevScopes(), Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d := transport.NewDispatcher(newServer(t), quiet)
	site := httptest.NewServer(web.New(web.Config{
		MCP: transport.NewHTTP(d, transport.HTTPConfig{
			Owner: func(r *http.Request) string { p, _ := auth.FromContext(r.Context()); return p.Owner() }, Logger: quiet,
		}),
		Verifier: dev.Verifier(), Bearer: auth.BearerOptions{Logger: quiet}, Logger: quiet,
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		d.Drain()
		site.CloseClientConnections()
		site.Close()
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return proxy(t, site.URL, token) + "/mcp"
}

// proxy adds a token to what it passes on, and changes nothing else: not the Host, which a scenario forges. It reads a
// message whole before it sends it on: an answer that begins before net/http's Transport has seen the end of the body that
// it forwards makes it close the connection, once in some hundred streams.
func proxy(t *testing.T, target, token string) (url string) {
	t.Helper()
	to := parsed(t, target)
	transport := &http.Transport{}
	p := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
			body, _ := io.ReadAll(r.In.Body) // of one that ends early the server sees that it does
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		Transport: transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	})
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
		transport.CloseIdleConnections()
	})
	return p.URL
}

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The suite's answers mean little if it talks to something else: without the proxy there is no way in, and behind it are
// our own tools too.
func TestTheServerIsOurs(t *testing.T) {
	endpoint := serve(t)
	got, err := http.Get(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET through the proxy: %s", got.Status)
	}
	var names []string
	for name := range newServer(t).ListTools() {
		names = append(names, name)
	}
	for _, name := range []string{"execute_python", "list_sessions", "health", "test_simple_text"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q", name, names)
		}
	}
}
