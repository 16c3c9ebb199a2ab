package main

import (
	"cmp"
	"context"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/request"
	"cellblock/mcpserver"
)

// admit is authorize that tells the audit log whom it has refused.
func (a *app) admit(ctx context.Context, method, tool string) error {
	err := a.authorize(ctx, method, tool)
	if err == nil || a.audit == nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	info := request.FromContext(ctx)
	scope, _ := mcpserver.RequiredScope(tool)
	a.audit.Append(audit.Entry{
		Event: audit.Denied, Request: info.ID, Address: info.Address, Issuer: p.Issuer, Subject: p.Subject, Client: p.ClientID,
		Tool: cmp.Or(tool, method), Scope: scope, Status: fault.KindOf(err).String(), Reason: err.Error(),
	})
	return err
}
