package main

import (
	"context"

	"cellblock/mcpserver/transport"
)

// admit is authorize that tells the audit log whom it has refused. Who is refused again and again does not fill it.
func (a *app) admit(ctx context.Context, call transport.Call) error {
	err := a.authorize(ctx, call)
	if err == nil || a.audit == nil {
		return err
	}
	owner, _ := a.mcp.Owner(ctx) // nobody, where nobody is signed in
	if a.mcp.Limiter.Tells(owner) {
		a.audit.Append(a.mcp.RefusedEntry(ctx, call, err))
	}
	return err
}
