package main

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/e2e/dial"
)

// mcpCaller is a connection of an MCP client.
type mcpCaller struct{ c *client.Client }

func connect(ctx context.Context, url, token string) (caller, error) {
	c, err := dial.MCP(ctx, "cellblock-load", url, token)
	if err != nil {
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
