package mcpserver

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// App shows cells to people in the conversation itself (MCP Apps, SEP-1865, revision 2026-01-26): a client that can shows its page
// beside each call that runs a cell. The page fetches what the cell shows with tools of its own, which no model is told of.
type App struct {
	// Page is the HTML document. It is the same for everybody.
	Page string
	// Cell makes what the page shows of a cell now.
	Cell func(*sessions.Execution, AppQuery) AppCell
}

// AppQuery says what a page wants of a cell.
type AppQuery struct {
	// Have are the versions of parts that it has already.
	Have []string
	// Whole are the keys of items whose text is not to be folded.
	Whole []string
}

// AppCell is what a page shows of a cell.
type AppCell struct {
	Session string `json:"session_id"`
	Number  int    `json:"execution_id"`
	// Seen is another one whenever there may be something new. Ended tells that nothing will be.
	Seen  string `json:"seen"`
	Ended bool   `json:"ended"`
	// Status is a word for a class, Label what people read; Seconds is how long the cell has been running, Took how long it ran.
	Status  string  `json:"status"`
	Label   string  `json:"label"`
	Seconds float64 `json:"seconds"`
	Took    string  `json:"took,omitempty"`
	// Failure says what went wrong that no output tells, Hint what to do.
	Failure string `json:"failure,omitempty"`
	Hint    string `json:"hint,omitempty"`

	Code  AppPart   `json:"code"`
	Items []AppPart `json:"items"`
	// Link is where the cell is in the viewer; empty where there is none.
	Link string `json:"link,omitempty"`
	// Interrupts tells that the caller may interrupt it now.
	Interrupts bool `json:"interrupts,omitempty"`
}

// AppPart is a part of a cell on a page: its code, or one thing that it shows. HTML is left out where the page has it.
type AppPart struct {
	Key     string `json:"key"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
	HTML    string `json:"html,omitempty"`
}

const (
	// appURI is the address of the page.
	appURI = "ui://cellblock/cell"
	// uiMeta is the key in _meta of what MCP Apps say about tools and resources.
	uiMeta = "ui"
)

// appTools are the tools for pages alone.
var appTools = []string{showCell, interruptCell}

// addApp gives srv the page, and tells clients that show it, and nobody else, of all that belongs to it.
func (s *service) addApp(srv *server.MCPServer, hooks *server.Hooks) {
	if s.App == nil {
		return
	}
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		tellOfApps(ctx, &r.Capabilities)
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		tellOfApps(ctx, &r.Capabilities)
	})
	hooks.AddAfterListResources(func(_ context.Context, _ any, _ *mcp.ListResourcesRequest, r *mcp.ListResourcesResult) {
		r.Resources = slices.DeleteFunc(r.Resources, func(of mcp.Resource) bool { return of.URI == appURI }) // tools name it
	})
	srv.AddResource(mcp.NewResource(appURI, "cell"), s.readApp)
}

func tellOfApps(ctx context.Context, c *mcp.ServerCapabilities) {
	if transport.ShowsApps(ctx) {
		c.Extensions = maps.Clone(c.Extensions)
		if c.Extensions == nil {
			c.Extensions = map[string]any{}
		}
		c.Extensions[transport.AppsExtension] = map[string]any{}
	}
}

// readApp is the page. It may reach nothing outside.
func (s *service) readApp(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	nowhere := map[string]any{"connectDomains": []string{}, "resourceDomains": []string{}, "frameDomains": []string{}, "baseUriDomains": []string{}}
	return []mcp.ResourceContents{mcp.TextResourceContents{
		URI: appURI, MIMEType: transport.AppType, Text: s.App.Page, Meta: map[string]any{uiMeta: map[string]any{"csp": nowhere, "prefersBorder": true}},
	}}, nil
}

// forApps is a list of tools for a client that shows apps, or for one that does not.
func (s *service) forApps(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
	if s.App == nil || !transport.ShowsApps(ctx) {
		return slices.DeleteFunc(tools, func(t mcp.Tool) bool { return slices.Contains(appTools, t.Name) })
	}
	for i, t := range tools {
		switch {
		case slices.Contains(appTools, t.Name):
			tools[i].Meta = aboutApp("visibility", []string{"app"})
		case strings.HasPrefix(t.Name, executePrefix): // also ExecuteFile
			tools[i].Meta = aboutApp("resourceUri", appURI)
		}
	}
	return tools
}

func aboutApp(name string, value any) *mcp.Meta {
	return &mcp.Meta{AdditionalFields: map[string]any{uiMeta: map[string]any{name: value}}}
}
