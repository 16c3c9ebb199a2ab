package main

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// notOffered makes of the error of a call, where the server does not have the tool, one that says so: which groups of tools there are
// is its operator's choice, and not all are by default.
func notOffered(ctx context.Context, c *client.Client, tool string, err error) error {
	if fault.KindOf(err) != fault.Internal { // the server, or what is before it, has said why
		return err
	}
	if tool != mcpserver.ExecuteFile && strings.HasPrefix(tool, executePrefix) {
		return err // of a language, which no group of tools brings
	}
	list, listErr := c.ListTools(ctx, mcp.ListToolsRequest{})
	if listErr != nil || slices.ContainsFunc(list.Tools, func(t mcp.Tool) bool { return t.Name == tool }) {
		return err
	}
	return fault.New(fault.Unavailable, "this server does not offer %s, which this command calls", tool).
		WithHint("Start it with more groups of tools: cellblock serve --toolsets %s. Those of images are off by default, and take a container engine.",
			strings.Join(mcpserver.Toolsets(), ","))
}
