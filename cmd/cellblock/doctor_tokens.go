package main

import (
	"context"
	"os"
	"strings"

	"cellblock/auth"
)

// tokens says whose tokens a server with this environment would accept, having fetched the keys as it would.
func (d doctor) tokens(ctx context.Context) finding {
	f := finding{name: "tokens"}
	env, err := auth.ConfigFromEnv(os.Environ())
	switch {
	case err != nil:
		f.err = err
		return f
	case env.Dev():
		f.found = "those of dev mode, on loopback addresses only"
		return f
	}
	base := d.cfg.PublicURL
	if base == "" {
		base = "http://" + d.cfg.Addr
	}
	authority, err := env.Open(ctx, base+"/mcp", d.logger)
	if err != nil {
		f.err = err
		return f
	}
	defer authority.Close()
	if _, f.err = authority.Health(); f.err != nil {
		return f
	}
	f.found = "those of " + env.Issuer
	if env.Issuer == "" {
		f.found = "those that the key of " + env.PublicKeyPath + " has signed"
	}
	f.notes = []string{"for " + strings.Join(env.AudiencesOr(base+"/mcp"), " or ") + ", signed with " + strings.Join(env.Algorithms, " or ")}
	return f
}
