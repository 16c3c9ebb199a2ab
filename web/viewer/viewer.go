package viewer

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
	"cellblock/web/viewer/live"
	"cellblock/web/viewer/signin"
)

// Config says what is shown, and to whom. Sessions, Verifier and SignIns are required.
type Config struct {
	Sessions *sessions.Manager
	// Verifier tells whom the token behind a sign-in speaks for.
	Verifier auth.Verifier
	// SignIns are the browsers that are signed in.
	SignIns *signin.Store
	// PublicURL is where browsers reach this server, without a path. Where it is https, cookies are sent over nothing else.
	PublicURL string
	// Provider is where people sign in; without an issuer and a client id they do by a link of the command line's only.
	Provider ProviderConfig
	// Dev tells that the server runs in dev mode, where everybody who signs in operates it.
	Dev bool
	// DataDir is the server's data folder where the command line has to be told which it is to make a link, in dev mode. Everybody who
	// reaches the server is shown it.
	DataDir string
	// Health says how the server is, for its operators. Nil: that is not shown.
	Health func(context.Context) mcpserver.HealthReport
	// Images are what sessions may run in. Nil: kernels run in none.
	Images mcpserver.ImageLibrary
	// ErrorHint tells what a model is told to do about an error, besides the error. Nil: nothing.
	ErrorHint func(sessions.Choice, kernels.ExecError) string
	// PrintedHint tells what a model is told to do about the texts that a cell has shown, which may have failed. Nil: nothing.
	PrintedHint func(c sessions.Choice, texts []string, failed *kernels.ExecError) string
	// Audit is told of all that people change, what they open and fetch, and who signs in. Nil: nobody is.
	Audit *audit.Log
	// Limiter bounds how often each owner changes something. Nil: nothing does.
	Limiter *mcpserver.Limiter
	// Version is the server's, for the foot of the pages.
	Version string
	// Logger gets what operators should know: never code, outputs or tokens. Nil: slog.Default.
	Logger *slog.Logger
}

// Viewer is the pages of a server.
type Viewer struct {
	Config
	origin   *http.CrossOriginProtection
	provider *provider // nil: none
	cookie   string    // its name
	table    []route
	streams  live.Streams
	// looks bounds what is opened, strays what is told of strangers.
	looks, strays *mcpserver.Limiter
	searches      *searches
	// draining ends when streams are to end that would never end by themselves, and what goes on without its page.
	draining context.Context
	drain    context.CancelCauseFunc
	known    *http.ServeMux // what there is, to be asked and not to serve
}

// New returns the pages.
func New(cfg Config) *Viewer {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	v := &Viewer{Config: cfg, origin: http.NewCrossOriginProtection(), cookie: cookieName(cfg.PublicURL), known: http.NewServeMux()}
	v.provider = newProvider(cfg.Provider, cfg.PublicURL)
	v.draining, v.drain = context.WithCancelCause(context.Background())
	v.looks, v.strays = mcpserver.NewLimiter(looksPerMinute, looksAtOnce), mcpserver.NewLimiter(strayPerMinute, strayAtOnce)
	v.searches = newSearches()
	v.table = v.routes()
	for _, r := range v.table {
		v.known.Handle(r.pattern, http.NotFoundHandler())
	}
	return v
}

// Drain ends the streams of all browsers, which come back to the next process, and restorations, whose cell that runs goes on. It may
// be called again.
func (v *Viewer) Drain() { v.drain(fault.New(fault.Unavailable, "the server is shutting down")) }

// Handler returns what serves the pages. gates stand in front of all that needs a sign-in, behind finding out whose it is.
func (v *Viewer) Handler(gates func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, r := range v.table {
		mux.Handle(r.pattern, v.serve(r, gates))
	}
	return mux
}

// Has tells whether a request is for the viewer: a path that it has, or any that a person has asked for. The path must be as it
// stands: none is cleaned or redirected.
func (v *Viewer) Has(r *http.Request) bool {
	if strings.Contains(r.URL.Path, "//") || strings.Contains(r.URL.Path, "/.") && strings.Contains(r.URL.Path+"/", "/./") || strings.Contains(r.URL.Path+"/", "/../") {
		return false
	}
	if _, pattern := v.known.Handler(r); pattern == "" || pattern == everythingElse {
		return wantsPage(r)
	} else if pattern == homePattern {
		return wantsPage(r)
	}
	return true
}

// wantsPage tells whether a person asks, with a browser.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}
