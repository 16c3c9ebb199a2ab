package main

import (
	"context"
	"net/http"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// authorize refuses a request, as its body names it, that the token may not make.
func (a *app) authorize(ctx context.Context, call transport.Call) error {
	return a.access.Authorize(call, func(scope string) bool { return tokenAllows(ctx, scope) })
}

func tokenAllows(ctx context.Context, scope string) bool {
	p, ok := auth.FromContext(ctx)
	return ok && p.Has(scope)
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
