// Package web is everything HTTP: which path leads where, who may go there, and how a server of it starts and stops.
//
// Every request passes the same gates in the same order: it is named, it is logged (never its token, query or body), a panic in it is
// caught, its answer carries the security headers, a foreign Origin or a rebound Host is turned away, and only then is its
// path looked up, exactly as it stands, in the one table of routes.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"cellblock/auth"
	"cellblock/mcpserver/transport"
	"cellblock/web/viewer"
)

// Config says what is served and to whom.
type Config struct {
	// MCP is the MCP endpoint (transport.NewHTTP). It is reached only with a token that Verifier accepts, and finds
	// the caller by auth.FromContext.
	MCP http.Handler
	// Verifier checks bearer tokens.
	Verifier auth.Verifier
	// Bearer says how a missing or bad token is answered. Its ResourceMetadata is set by New: to this server's own
	// when there is an Issuer to name in it, else to nothing.
	Bearer auth.BearerOptions
	// PublicURL is where clients reach this server, without a path: "https://cells.example.com". Its origin and host are
	// allowed besides AllowedOrigins and AllowedHosts (transport.NewGuard).
	PublicURL                    string
	AllowedOrigins, AllowedHosts []string
	// Proxies are the networks of proxies whose word on their clients is taken.
	Proxies []netip.Prefix
	// Limits bound what clients hold at the same time.
	Limits Limits
	// TLS is what Serve serves with. Nil: it serves HTTP.
	TLS *Certificates
	// Issuer is the authorization server that gives out tokens. Empty: no protected-resource metadata (RFC 9728) is served.
	Issuer string
	// Scopes are those that the metadata names. Optional.
	Scopes []string
	// Health says how the server is. Nil: it answers, so it is well.
	Health func(context.Context) Health
	// Operator tells whether the caller operates the server (Health.OperatorDetail). Nil: nobody does.
	Operator func(context.Context) bool
	// Viewer is the pages for people. Nil: there are none.
	Viewer *viewer.Viewer
	// Metrics are served at /metrics to operators. Nil: they are not.
	Metrics http.Handler
	// Answered is told of every answer: what was asked for, one of a few words, its status, and how long it took. Nil: nobody is.
	Answered func(what string, status int, took time.Duration)
	// Version is shown at /health.
	Version string
	// Drain and Cancel are the steps of a graceful stop: end what would never end by itself, cancel what still runs
	// (transport.Dispatcher has both). Optional.
	Drain, Cancel func()
	// Logger gets a line per request. Nil: slog.Default.
	Logger *slog.Logger
}

// handler is the whole site.
type handler struct {
	http.Handler
	cfg Config
}

// New returns the handler for the whole site: /mcp, /health, the metadata that OAuth clients look for, and the viewer's pages,
// or, without a viewer, one page for people at /.
func New(cfg Config) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.PublicURL = strings.TrimSuffix(strings.TrimSuffix(cfg.PublicURL, "/"), mcpPath)
	cfg.Bearer.ResourceMetadata = ""
	if cfg.Issuer != "" {
		cfg.Bearer.ResourceMetadata = cfg.PublicURL + MetadataPath + mcpPath
	}
	if cfg.Bearer.Logger == nil {
		cfg.Bearer.Logger = cfg.Logger
	}
	guard := cfg.guard()
	site := http.Handler(cfg.router(time.Now()))
	site = shareWithOrigins(transport.NewGuard(cfg.AllowedOrigins, nil), site)
	site = guard.Require(site, func(w http.ResponseWriter, _ *http.Request, err error) { writeError(w, err) })
	site = boundBodies(secure(site))
	site = recoverPanics(cfg.Logger, site)
	return &handler{Handler: nameClients(cfg.Proxies, cfg.count(logRequests(cfg.Logger, site))), cfg: cfg}
}

// guard allows this server's own address besides those of the configuration.
func (cfg Config) guard() *transport.Guard {
	origins, hosts := cfg.AllowedOrigins, cfg.AllowedHosts
	if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
		origins = append([]string{u.Scheme + "://" + u.Host}, origins...)
		hosts = append([]string{u.Hostname()}, hosts...)
	}
	return transport.NewGuard(origins, hosts)
}

// mcpURL is the address of the MCP endpoint, as clients must write it.
func (cfg Config) mcpURL() string { return cfg.PublicURL + mcpPath }
