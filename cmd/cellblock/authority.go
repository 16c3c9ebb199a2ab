package main

import (
	"context"
	"log/slog"
	"net/http"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver/transport"
	"cellblock/web"
	"cellblock/web/viewer"
)

// openAuthority returns what verifies tokens, and in dev mode the file that holds one.
func (a *app) openAuthority(ctx context.Context, env auth.EnvConfig, cfg *Config, audience string) (auth.Authority, string, error) {
	if env.Dev() {
		dev, err := auth.EnsureDev(cfg.DataDir)
		if err != nil {
			return auth.Authority{}, "", err
		}
		if err := dev.Allow(append(a.access.Scopes(), a.access.ProfileScopes()...)); err != nil {
			return auth.Authority{}, "", err
		}
		return auth.AlwaysThere(dev.Verifier()), dev.TokenPath(), nil
	}
	authority, err := env.Open(ctx, audience, a.logger)
	if err == nil {
		a.logger.Info("whose tokens are taken", "issuer", env.Issuer, "audience", env.AudiencesOr(audience), "algorithms", env.Algorithms)
	}
	return authority, "", err
}

// warnOfNoKeys says, behind the line that the server is ready, that it answers no call yet: what the fetching of keys has logged before
// is easily read as over.
func warnOfNoKeys(authority auth.Authority, logger *slog.Logger) {
	if serving, problem := authority.Health(); !serving {
		logger.Warn("every call is refused until the issuer's keys have been fetched, which goes on being tried", "error", problem, "hint", fault.Hint(problem))
	}
}

// handler is the whole site.
func (a *app) handler(cfg *Config, env auth.EnvConfig, authority auth.Authority, base string, certificates *web.Certificates, pages *viewer.Viewer) http.Handler {
	proxies, _ := cfg.proxies() // checked with the configuration
	bearer := auth.BearerOptions{Logger: a.logger, ScopePrefix: env.ScopePrefix}
	if env.AsksForScopes() {
		bearer.Scopes = a.access.Scopes()
	}
	if env.AuthorizationServer() != "" {
		bearer.ResourceMetadata = base + web.MetadataPath + "/mcp"
	}
	mcp := transport.NewHTTP(a.dispatcher, transport.HTTPConfig{
		Owner: requestOwner, Key: a.key, AllowedOrigins: cfg.AllowedOrigins, AllowedHosts: cfg.AllowedHosts,
		Authorize: a.admit, Logger: a.logger,
		Forbidden: func(w http.ResponseWriter, r *http.Request, err error) {
			auth.InsufficientScope(w, r, bearer, err)
		},
	})
	var counts http.Handler
	if a.metrics != nil && cfg.Metrics.Addr == "" {
		counts = a.metrics.Handler()
	}
	return web.New(web.Config{
		MCP: mcp, Verifier: authority.Verifier, Bearer: bearer, PublicURL: base, Issuer: env.AuthorizationServer(),
		Scopes:         auth.Prefixed(env.ScopePrefix, bearer.Scopes),
		AllowedOrigins: cfg.AllowedOrigins, AllowedHosts: cfg.AllowedHosts, Proxies: proxies, TLS: certificates,
		Limits: cfg.HTTP.limits(),
		Health: a.webHealth, Operator: a.mcp.Operator,
		Viewer: pages, Metrics: counts, Answered: a.metrics.Answered,
		Drain: func() { a.dispatcher.Drain(); pages.Drain() }, Cancel: a.dispatcher.Cancel, Version: version, Logger: a.logger,
	})
}

// webHealth is how the server is, for each who asks as much as is meant for him. Where no token can be verified, everybody is
// told so: there is nobody to whom it could be told alone.
func (a *app) webHealth(ctx context.Context) web.Health {
	report := a.health(ctx)
	return web.Health{Status: report.Status, Reason: report.Reason(), Detail: report.Public(), OperatorDetail: report}
}

// operates tells whether a caller may see what is wrong with the machine: who has the scope for it and, in dev mode, whoever
// has a token.
func operates(dev bool) func(context.Context) bool {
	return func(ctx context.Context) bool { return dev || tokenAllows(ctx, auth.ScopeAdmin) }
}
