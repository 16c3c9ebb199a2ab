package transport

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// dial connects mcp-go's own client. It chooses 2026-07-28 by itself, and the handshake where told to listen.
func dial(t *testing.T, url, owner string, o ...transport.StreamableHTTPCOption) *mcpclient.Client {
	t.Helper()
	o = append(o, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + owner}))
	tr, err := transport.NewStreamableHTTP(url, o...)
	if err != nil {
		t.Fatal(err)
	}
	c := mcpclient.NewClient(tr)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1"}
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWithMcpGoClient(t *testing.T) {
	for name, options := range map[string][]transport.StreamableHTTPCOption{
		stateless: nil,
		//nolint:staticcheck // clients that listen so are what the revisions with a handshake are for
		handshake: {transport.WithContinuousListening()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := dial(t, w.url, "ann", options...)
			if c.ProtocolVersion() != name {
				t.Fatalf("speaks %s", c.ProtocolVersion())
			}
			exercise(t, c)
			checkDisconnect(t, w, c, name == stateless)
		})
	}
}

// exercise lists tools and calls one with progress.
func exercise(t *testing.T, c *mcpclient.Client) {
	t.Helper()
	if tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{}); err != nil || len(tools.Tools) != 5 {
		t.Errorf("tools: %v %v", tools, err)
	}
	var progress atomic.Int64
	c.OnNotification(func(n mcp.JSONRPCNotification) { progress.Add(1) })
	for range 20 {
		progress.Store(0)
		var q mcp.CallToolRequest
		q.Params.Name, q.Params.Arguments = "progress", map[string]any{"n": 50}
		q.Params.Meta = &mcp.Meta{ProgressToken: "t"}
		if got, err := c.CallTool(t.Context(), q); err != nil || got.Content[0].(mcp.TextContent).Text != "done, <nil>" {
			t.Fatalf("call: %v %v", got, err)
		}
		if progress.Load() != 50 {
			t.Errorf("%d of 50 notifications came before the result", progress.Load())
		}
	}
}

// checkDisconnect ends a call's context, upon which this client closes its connection.
func checkDisconnect(t *testing.T, w *world, c *mcpclient.Client, cancels bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		var q mcp.CallToolRequest
		q.Params.Name = "block"
		_, err := c.CallTool(ctx, q)
		failed <- err
	}()
	call := await(t, w.calls)
	cancel()
	if err := await(t, failed); err == nil {
		t.Error("a call with an ended context succeeded")
	}
	if cancels {
		await(t, call.ended)
		return
	}
	exercise(t, c) // goes on in the same session
	call.untouched(t)
	close(call.release)
}

func TestWithMcpGoClientOverStdio(t *testing.T) {
	w := newWorld(t)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- w.d.ServeStdio(t.Context(), inR, outW) }()
	c := mcpclient.NewClient(transport.NewIO(outR, inW, io.NopCloser(eof{})))
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	exercise(t, c)
	checkDisconnect(t, w, c, true)
	inW.Close()
	if err := await(t, ended); err != nil {
		t.Error(err)
	}
	outW.Close()
	c.Close()
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
