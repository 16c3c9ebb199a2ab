package main

import (
	"context"

	"cellblock/mcpserver/transport"
)

// toldPerMinute and toldAtOnce bound how often the audit log is told of what an owner is refused. It is a bound of its own: calls that are
// allowed, in whatever number, hide none that are not.
const toldPerMinute, toldAtOnce = 600, 200

// admit is authorize that tells the audit log whom it has refused. Who is refused again and again does not fill it.
func (a *app) admit(ctx context.Context, call transport.Call) error {
	err := a.authorize(ctx, call)
	if err == nil || a.audit == nil {
		return err
	}
	owner, _ := a.mcp.Owner(ctx)   // nobody, where nobody is signed in
	_ = a.mcp.Limiter.Count(owner) // it was a call
	if a.refused.Tells(owner) {
		a.audit.Append(a.mcp.RefusedEntry(ctx, call, err))
	}
	return err
}
