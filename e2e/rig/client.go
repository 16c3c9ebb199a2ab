package rig

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Client is an MCP client, mcp-go's, connected to a Server.
type Client struct {
	*client.Client
	connections *http.Transport

	mu    sync.Mutex
	calls int
	told  map[string]func(message string)
}

// Result is what a tool gave, taken apart.
type Result struct {
	Text    string
	Images  [][]byte
	IsError bool
	// Structured and Meta are what programs find beside the text.
	Structured any
	Meta       map[string]any
}

// Connect opens a client. It speaks 2026-07-28, or with handshake the newest revision that begins with initialize.
func (s *Server) Connect(t testing.TB, token string, handshake bool) *Client {
	t.Helper()
	var options []client.ClientOption
	if handshake {
		//nolint:staticcheck // deprecated with the handshake itself, which clients will speak for years
		options = append(options, client.WithLegacyProtocolOnly())
	}
	return s.ConnectAs(t, token, mcp.LATEST_PROTOCOL_VERSION, options...)
}

// ConnectAs opens a client that asks for a revision and has more abilities.
func (s *Server) ConnectAs(t testing.TB, token, revision string, options ...client.ClientOption) *Client {
	t.Helper()
	c := &Client{connections: &http.Transport{}, told: map[string]func(string){}}
	tr, err := transport.NewStreamableHTTP(s.URL, transport.WithHTTPBasicClient(&http.Client{Transport: c.connections}),
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		t.Fatal(err)
	}
	c.Client = client.NewClient(tr, options...)
	c.OnNotification(c.notified)
	t.Cleanup(c.Close)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = revision
	hello.Params.ClientInfo = mcp.Implementation{Name: "e2e", Version: "1"}
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatalf("initialize: %v\n%s", err, s.Log())
	}
	return c
}

// Close ends the client with its connections. It may be called again.
func (c *Client) Close() {
	_ = c.Client.Close()
	c.connections.CloseIdleConnections()
}

// Disconnect drops the connections that are not in use, which a server that has ended has closed.
func (c *Client) Disconnect() { c.connections.CloseIdleConnections() }

func (c *Client) notified(n mcp.JSONRPCNotification) {
	token, _ := n.Params.AdditionalFields["progressToken"].(string)
	message, _ := n.Params.AdditionalFields["message"].(string)
	c.mu.Lock()
	told := c.told[token]
	c.mu.Unlock()
	if told != nil {
		told(message)
	}
}

// Call calls a tool. A told that is not nil hears the messages of its progress.
func (c *Client) Call(ctx context.Context, tool string, args map[string]any, told func(message string)) (Result, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, args
	if told != nil {
		token, forget := c.listen(told)
		defer forget()
		r.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	got, err := c.CallTool(ctx, r)
	if err != nil {
		return Result{}, err
	}
	return resultOf(got)
}

func (c *Client) listen(told func(string)) (token string, forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	token = fmt.Sprintf("call-%d", c.calls)
	c.told[token] = told
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.told, token)
	}
}

func resultOf(got *mcp.CallToolResult) (Result, error) {
	r := Result{IsError: got.IsError, Structured: got.StructuredContent}
	if got.Meta != nil {
		r.Meta = got.Meta.AdditionalFields
	}
	var text []string
	for _, block := range got.Content {
		switch b := block.(type) {
		case mcp.TextContent:
			text = append(text, b.Text)
		case mcp.ImageContent:
			raw, err := base64.StdEncoding.DecodeString(b.Data)
			if err != nil {
				return r, fmt.Errorf("image: %w", err)
			}
			r.Images = append(r.Images, raw)
		}
	}
	r.Text = strings.Join(text, "\n")
	return r, nil
}

// Read reads a text resource and returns it with the _meta of its contents.
func (c *Client) Read(ctx context.Context, uri string) (text string, meta map[string]any, err error) {
	var r mcp.ReadResourceRequest
	r.Params.URI = uri
	got, err := c.ReadResource(ctx, r)
	if err != nil {
		return "", nil, err
	}
	for _, contents := range got.Contents {
		if t, ok := contents.(mcp.TextResourceContents); ok {
			return t.Text, t.Meta, nil
		}
	}
	return "", nil, fmt.Errorf("%s has no text", uri)
}

// ToolNames are the names of the tools that the server lists.
func (c *Client) ToolNames(t testing.TB) (names []string) {
	t.Helper()
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}
