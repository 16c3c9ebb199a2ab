package main

import (
	"context"
	"net/http"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/web"
)

// openAuthority returns what verifies tokens, and in dev mode the file that holds one.
func (a *app) openAuthority(ctx context.Context, env auth.EnvConfig, cfg *Config, audience string) (auth.Authority, string, error) {
	if env.Dev() {
		dev, err := auth.EnsureDev(cfg.DataDir)
		if err != nil {
			return auth.Authority{}, "", err
		}
		if err := dev.Allow(a.access.Scopes()); err != nil {
			return auth.Authority{}, "", err
		}
		return auth.AlwaysThere(dev.Verifier()), dev.TokenPath(), nil
	}
	authority, err := env.Open(ctx, audience, a.logger)
	if err == nil {
		a.logger.Info("tokens are verified", "issuer", env.Issuer, "audience", env.AudiencesOr(audience), "algorithms", env.Algorithms)
	}
	return authority, "", err
}

// handler is the whole site.
func (a *app) handler(cfg *Config, env auth.EnvConfig, authority auth.Authority, base string, certificates *web.Certificates) http.Handler {
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
	return web.New(web.Config{
		MCP: mcp, Verifier: authority.Verifier, Bearer: bearer, PublicURL: base, Issuer: env.AuthorizationServer(),
		Scopes:         auth.Prefixed(env.ScopePrefix, bearer.Scopes),
		AllowedOrigins: cfg.AllowedOrigins, AllowedHosts: cfg.AllowedHosts, Proxies: proxies, TLS: certificates,
		Limits: cfg.HTTP.limits(),
		Health: func(ctx context.Context) web.Health { return healthWith(a.health(ctx), authority) },
		Drain:  a.dispatcher.Drain, Cancel: a.dispatcher.Cancel, Version: version, Logger: a.logger,
	})
}

// healthWith adds to how the server is whether it can tell who calls. Without that it serves nobody, and says so to anybody:
// no token can be verified to whose owner it could be told alone.
func healthWith(report mcpserver.HealthReport, authority auth.Authority) web.Health {
	serving, problem := authority.Health()
	reason := ""
	if problem != nil {
		report.Problems = append(report.Problems, mcpserver.Problem{What: problem.Error(), Hint: fault.Hint(problem)})
		if report.Status == mcpserver.HealthOK {
			report.Status = mcpserver.HealthDegraded
		}
	}
	if !serving {
		report.Status = mcpserver.HealthDown
		reason = "tokens cannot be verified: the keys of their issuer could not be fetched; the server's log says why"
	}
	return web.Health{Status: report.Status, Reason: reason, Detail: report}
}
