package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
	"cellblock/web"
)

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over HTTP",
		Long: `Serves MCP over HTTP at /mcp. With no MCP_* variable set it runs in dev mode: it listens on loopback only, makes a key
pair and a token in the data folder by itself, and says where the token is. It is ready when it says so on standard error.
The first SIGTERM or SIGINT stops it gracefully, the second faster, the third at once. Kernels of sessions go on, and the
next start on the same data folder finds them again, with their variables; with --on-shutdown stop they end with the server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd) },
	}
	addServerFlags(cmd)
	flags := cmd.Flags()
	flags.String("addr", "", "where to listen (default 127.0.0.1:8787; port 0: a free one)")
	flags.String("public-url", "", "the address that clients use, behind a proxy")
	return cmd
}

func runServe(cmd *cobra.Command) error {
	cfg, err := configFor(cmd)
	if err != nil {
		return err
	}
	env, err := auth.ConfigFromEnv(os.Environ())
	if err != nil {
		return err
	}
	if err := checkDevAddr(env, cfg.Addr); err != nil {
		return err
	}
	outliveReaders()
	graceful, forced, release := stopSignals(cmd.Context())
	defer release()
	// First of all: who calls while kernels are being found again waits for that, and is not refused.
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return fault.New(fault.Unavailable, "cannot listen: %w", err).WithHint("Choose another address with --addr.")
	}
	logger := newLogger(cfg.Log)
	a, err := newApp(graceful, cfg, logger, access{slot: serveSlot, owner: tokenOwner, allowed: tokenAllows})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	a.keep = cfg.OnShutdown != stopKernels
	return errors.Join(a.serveHTTP(graceful, forced, cfg, env, listener), a.close(forced))
}

// checkDevAddr keeps dev mode, whose token lies in a file, off the network.
func checkDevAddr(env auth.EnvConfig, addr string) error {
	host, _, _ := net.SplitHostPort(addr) // checked with the configuration
	if ip := net.ParseIP(host); !env.Dev() || host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fault.New(fault.Invalid, "dev mode listens on loopback addresses only, and %s is none", addr).
		WithHint("Use --addr 127.0.0.1:8787, or set %s and %s to verify your issuer's tokens.", auth.EnvPublicKeyPath, auth.EnvIssuer)
}

func (a *app) serveHTTP(graceful, forced context.Context, cfg *Config, env auth.EnvConfig, listener net.Listener) error {
	base := a.publicBase(cfg, listener.Addr(), os.Hostname)
	verifier, tokenPath, err := verifierFor(env, cfg, base+"/mcp")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	handler, err := a.handler(cfg, env, verifier, base)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if !env.Dev() {
		a.logger.Info("tokens are verified", "issuer", env.Issuer, "audience", env.AudiencesOr(base+"/mcp"))
	}
	defer context.AfterFunc(graceful, func() {
		a.logger.Info(stoppingLine(a.keep))
	})()
	if err := leaveAddress(cfg.DataDir, a.slot.name, listener.Addr()); err != nil {
		a.logger.Warn("commands will not find this server by its data folder", "error", err)
	}
	defer removeAddress(cfg.DataDir, a.slot.name)
	fmt.Fprintln(os.Stderr, readyLine(base, a.backend.where, tokenPath))
	a.sessions.StartPool()
	return web.Serve(graceful, forced, listener, handler)
}

// publicBase is the address by which clients know the server, without a path. An address of the listener that stands for
// all of this machine is none that they could use, or that tokens could be meant for: then it is the machine's name.
func (a *app) publicBase(cfg *Config, listening net.Addr, hostname func() (string, error)) string {
	if cfg.PublicURL != "" {
		return cfg.PublicURL
	}
	at, ok := listening.(*net.TCPAddr)
	if !ok || !at.IP.IsUnspecified() {
		return "http://" + listening.String()
	}
	name, err := hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	base := fmt.Sprintf("http://%s:%d", name, at.Port)
	a.logger.Warn("addr names no host; clients and tokens are told this machine's name. Set public_url if they use another",
		"addr", listening.String(), "public_url", base)
	return base
}

// verifierFor returns what verifies tokens, and in dev mode the file that holds one.
func verifierFor(env auth.EnvConfig, cfg *Config, audience string) (auth.Verifier, string, error) {
	if !env.Dev() {
		v, err := env.Verifier(audience)
		return v, "", err
	}
	dev, err := auth.EnsureDev(cfg.DataDir)
	if err != nil {
		return nil, "", err
	}
	return dev.Verifier(), dev.TokenPath(), nil
}

func (a *app) handler(cfg *Config, env auth.EnvConfig, verifier auth.Verifier, base string) (http.Handler, error) {
	bearer := auth.BearerOptions{Logger: a.logger}
	if env.Issuer != "" {
		bearer.ResourceMetadata = base + web.MetadataPath + "/mcp"
	}
	mcp := transport.NewHTTP(a.dispatcher, transport.HTTPConfig{
		Owner: requestOwner, Key: a.key, AllowedOrigins: cfg.AllowedOrigins, AllowedHosts: cfg.AllowedHosts,
		Authorize: a.authorize, Logger: a.logger,
		Forbidden: func(w http.ResponseWriter, r *http.Request, err error) {
			auth.InsufficientScope(w, bearer, missingScope(err))
		},
	})
	return web.New(web.Config{
		MCP: mcp, Verifier: verifier, Bearer: bearer, PublicURL: base, Issuer: env.Issuer,
		AllowedOrigins: cfg.AllowedOrigins, AllowedHosts: cfg.AllowedHosts,
		Health: func(ctx context.Context) web.Health {
			report := a.health(ctx)
			return web.Health{Status: report.Status, Detail: report}
		},
		Drain: a.dispatcher.Drain, Cancel: a.dispatcher.Cancel, Version: version, Logger: a.logger,
	}), nil
}

// readyLine is the one line that tells a person, or a script, that the server serves, and how to use it.
func readyLine(base, where, tokenPath string) string {
	line := fmt.Sprintf("cellblock %s is ready at %s/mcp · kernels: %s", version, base, where)
	token := "$TOKEN"
	if tokenPath != "" {
		line += " · token: " + tokenPath
		token = "$(cat " + tokenPath + ")"
	}
	return line + fmt.Sprintf(` · claude mcp add --transport http cellblock %s/mcp --header "Authorization: Bearer %s"`, base, token)
}

// scopeError says which scope a call lacks.
type scopeError struct {
	error // a *fault.Error
	scope string
}

func (e *scopeError) Unwrap() error { return e.error }

// authorize refuses a request, as its body names it, that the token may not make: a call of a tool, or to read a resource.
func (a *app) authorize(ctx context.Context, method, tool string) error {
	has := func(scope string) bool { return tokenAllows(ctx, scope) }
	switch method {
	case "tools/call":
		// A tool that is not there is for the dispatcher to refuse: no token could be got that allows it.
		if _, offered := a.scopes[tool]; offered && !a.mcp.Allows(tool, has) {
			return lacking(a.mcp.Lacks(tool, has), tool)
		}
	case "resources/read":
		if !has(mcpserver.ScopeRead) && !has(mcpserver.ScopeFilesRead) { // which of them, the resource says
			return lacking(mcpserver.ScopeRead, "reading resources")
		}
	}
	return nil
}

func lacking(scope, what string) error {
	return &scopeError{scope: scope, error: fault.New(fault.Forbidden, "the token lacks the scope %s, which %s needs", scope, what).
		WithHint("Ask for a token with that scope.")}
}

func missingScope(err error) string {
	var missing *scopeError
	if errors.As(err, &missing) {
		return missing.scope
	}
	return ""
}

func tokenAllows(ctx context.Context, scope string) bool {
	p, ok := auth.FromContext(ctx)
	return ok && (scope == "" || p.Has(scope))
}

func tokenOwner(ctx context.Context) (sessions.Owner, error) {
	p, ok := auth.FromContext(ctx)
	if !ok {
		return sessions.Owner{}, fault.New(fault.Unauthenticated, "nobody is signed in")
	}
	return sessions.Owner{Issuer: p.Issuer, Subject: p.Subject}, nil
}

func requestOwner(r *http.Request) string {
	p, _ := auth.FromContext(r.Context())
	return p.Owner()
}
