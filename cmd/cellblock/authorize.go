package main

import (
	"context"
	"errors"
	"net/http"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

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
