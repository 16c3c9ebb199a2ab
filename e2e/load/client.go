package main

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// mcpCaller is a connection of an MCP client.
type mcpCaller struct{ c *client.Client }

func connect(ctx context.Context, url, token string) (caller, error) {
	t, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	c := client.NewClient(t)
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "cellblock-load", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		_ = c.Close()
		return nil, err
	}
	return mcpCaller{c}, nil
}

func (m mcpCaller) Call(ctx context.Context, tool string, args map[string]any) (string, bool, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, args
	result, err := m.c.CallTool(ctx, r)
	if err != nil {
		return "", false, err
	}
	var text strings.Builder
	for _, block := range result.Content {
		if t, ok := block.(mcp.TextContent); ok {
			text.WriteString(t.Text + "\n")
		}
	}
	return text.String(), result.IsError, nil
}

func (m mcpCaller) Close() error { return m.c.Close() }
