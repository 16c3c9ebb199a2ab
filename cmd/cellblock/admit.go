package main

import (
	"cmp"
	"context"
	"strings"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/request"
	"cellblock/mcpserver/transport"
)

// admit is authorize that tells the audit log whom it has refused. Who is refused again and again does not fill it.
func (a *app) admit(ctx context.Context, call transport.Call) error {
	err := a.authorize(ctx, call)
	if err == nil || a.audit == nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	owner, _ := tokenOwner(ctx) // nobody, where nobody is signed in
	if !a.mcp.Limiter.Tells(owner) {
		return err
	}
	info := request.FromContext(ctx)
	entry := audit.Entry{
		Event: audit.Denied, Request: info.ID, Address: info.Address, Issuer: owner.Issuer, Subject: owner.Subject, ClientID: p.ClientID,
		Tool: cmp.Or(call.Tool, call.Method), Scope: strings.Join(auth.ScopesIn(err), " "), Status: fault.KindOf(err).String(), Reason: err.Error(),
	}
	if call.URI != "" {
		entry.Files = []string{call.URI}
	}
	a.audit.Append(entry)
	return err
}
