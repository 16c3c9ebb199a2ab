package transport

import (
	"context"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// abilities are the capabilities of a client that this server makes use of, small enough to stand in its session id.
type abilities byte

const (
	asksByForm abilities = 1 << iota
	asksByURL
	showsApps
)

const (
	// AppsExtension is the name of MCP Apps (SEP-1865) among a client's, and a server's, extensions.
	AppsExtension = "io.modelcontextprotocol/ui"
	// AppType is the MIME type of the documents that its hosts show.
	AppType = "text/html;profile=mcp-app"
)

// ShowsApps reports whether the client of the request that ctx belongs to shows the documents of MCP Apps.
func ShowsApps(ctx context.Context) bool {
	s, ok := server.ClientSessionFromContext(ctx).(*session)
	return ok && abilitiesOf(s.GetClientCapabilities())&showsApps != 0
}

func abilitiesOf(c mcp.ClientCapabilities) abilities {
	a := waysToAsk(c.Elicitation)
	settings, _ := c.Extensions[AppsExtension].(map[string]any)
	if types, _ := settings["mimeTypes"].([]any); slices.Contains(types, any(AppType)) {
		a |= showsApps
	}
	return a
}

func waysToAsk(c *mcp.ElicitationCapability) (a abilities) {
	if c == nil {
		return 0
	}
	if c.URL != nil {
		a |= asksByURL
	}
	if c.Form != nil || a == 0 { // one that names no way means forms
		a |= asksByForm
	}
	return a
}

// capabilities returns what a client with these abilities declared, as far as it is known.
func (a abilities) capabilities() (c mcp.ClientCapabilities) {
	if a&(asksByForm|asksByURL) != 0 {
		c.Elicitation = &mcp.ElicitationCapability{}
	}
	if a&asksByForm != 0 {
		c.Elicitation.Form = &struct{}{}
	}
	if a&asksByURL != 0 {
		c.Elicitation.URL = &struct{}{}
	}
	if a&showsApps != 0 {
		c.Extensions = map[string]any{AppsExtension: map[string]any{"mimeTypes": []any{AppType}}}
	}
	return c
}
