// Package mcpserver is the Model Context Protocol's face of cellblock: the tools, what they accept, and how a cell's
// outputs become content blocks that a model can read.
//
// A tool's handler takes the caller from the context, checks the arguments strictly, and asks the session manager. What
// the caller can mend is told as a tool result with isError, never as a protocol error. Results are written for a model:
// short, in order, and with the next step in them.
package mcpserver

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/audit"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// Config says what the tools work on. Sessions, Owner and Allowed are required.
type Config struct {
	Sessions *sessions.Manager
	// Owner returns whose sessions a call is about. Its error is told to the caller.
	Owner func(ctx context.Context) (sessions.Owner, error)
	// Allowed tells whether the caller has a scope. It is not asked about tools without one.
	Allowed func(ctx context.Context, scope string) bool
	// Images makes images with packages. Nil: kernels run in none, and the tools say so.
	Images ImageLibrary
	// Health makes the report of the health tool. Nil: the tool reports what the session manager knows.
	Health func(ctx context.Context) HealthReport
	// Profiles looks at what the profiles want of the machine. Nil: nobody does, and a report has their names only.
	Profiles *ProfileWatch
	// Version is the server's, for clients.
	Version string
	// Toolsets are the groups of tools that are offered. Nil: DefaultToolsets. See CheckToolsets.
	Toolsets []string
	// ImageSide is the longest side of an image in a result, in pixels. 0: DefaultImageSide.
	ImageSide int
	// Logger gets what operators should know. It is never given code, outputs or tokens. Nil means slog.Default.
	Logger *slog.Logger
	// StateKey seals what a client brings back with the answer to a cell's input(). Nil: a new one.
	StateKey transport.SessionKey
	// Operator tells whether the caller operates the server, and may be told what is wrong with its machine. Nil: everybody.
	Operator func(context.Context) bool
	// Audit is told of every call. Nil: nobody is.
	Audit *audit.Log
	// Limiter bounds how often each owner calls. Nil: nothing does.
	Limiter *Limiter
	// App shows cells in the conversation, to clients that can show it. Nil: nothing does.
	App *App
	// Languages are those that get an execute tool, by their names in the manager's Runtimes; the first is explained at length.
	// Nil means all of them, Python first.
	Languages []string
}

// service is what the handlers share.
type service struct {
	Config
	budget budget
	// readOnly names the tools that change nothing.
	readOnly map[string]bool
	access   *Access
	// looks bounds how often each owner's pages look at cells, and told is what the audit log has heard of that.
	looks *Limiter
	told  lookLog
	// onHost tells whether kernels run in no images, and have the host's packages. A provisioner is asked once, when that is first wanted.
	onHost func() bool
	// notify sends a notification to the caller of a request.
	notify func(ctx context.Context, method string, params map[string]any) error
}

// instructions are what a model is told before it sees the tools.
func (s *service) instructions() string {
	return "Runs code in persistent, isolated Jupyter kernels. Give related calls the same session_id: variables, imports and files " +
		"stay between them. " + s.networkNote() + ". The kernels see none of the user's files. Plots come back as images."
}

// New returns an MCP server with the tools that a caller's scopes allow: others are not listed and cannot be called.
func New(cfg Config) *server.MCPServer { return newService(cfg).server() }

func newService(cfg Config) *service {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.StateKey == nil {
		cfg.StateKey = transport.NewSessionKey()
	}
	cfg.Languages = cfg.languages()
	s := &service{Config: cfg, budget: defaultBudget, notify: transport.Notify}
	s.onHost = sync.OnceValue(func() bool {
		p := cfg.Sessions.Config().Provisioner
		return p != nil && !p.Capabilities().Images
	})
	if cfg.ImageSide > 0 {
		s.budget.side = cfg.ImageSide
	}
	return s
}

func (cfg Config) languages() []string {
	if cfg.Languages != nil {
		return cfg.Languages
	}
	names := slices.Sorted(maps.Keys(cfg.Sessions.Config().Runtimes))
	if i := slices.Index(names, "python"); i > 0 { // it is explained at length, and models know it best
		names = append([]string{"python"}, slices.Delete(names, i, i+1)...)
	}
	return names
}

func (s *service) server() *server.MCPServer {
	s.access = s.newAccess()
	s.looks = s.Limiter.another()
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(s.filterList)
	hooks.AddBeforeCallTool(s.refuseUnknown)
	srv := server.NewMCPServer("cellblock", s.Version,
		server.WithTitle("cellblock"), server.WithInstructions(s.instructions()),
		server.WithToolCapabilities(false), server.WithResourceCapabilities(false, false),
		server.WithHooks(hooks),
		server.WithMethodCacheHints(mcp.MethodToolsList, 60_000, mcp.CacheScopePrivate),
		server.WithToolHandlerMiddleware(s.limited), server.WithToolHandlerMiddleware(s.audited),
		server.WithResourceHandlerMiddleware(s.limitedResource), server.WithResourceHandlerMiddleware(s.auditedResource),
		server.WithResourceRecovery(),
		server.WithToolHandlerMiddleware(s.recovered), server.WithToolHandlerMiddleware(s.guarded))
	s.readOnly = map[string]bool{}
	for _, t := range s.tools() {
		s.readOnly[t.name] = t.readOnly
		srv.AddTool(t.tool(), t.handle)
	}
	s.addResources(srv, hooks)
	s.addFileResources(srv, hooks)
	s.addApp(srv, hooks)
	return srv
}
