// Package request tells those who handle a call what is known of the request that brought it, beside who made it.
package request

import (
	"context"
	"crypto/rand"
	"strings"
)

// Info is what is known of a request.
type Info struct {
	// ID is the server's own name for it, the same in all logs.
	ID string
	// Address is that of the client, without a port; empty where there is no network between.
	Address string
}

type contextKey struct{}

// NewID returns a name that no other request has.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }

// NewContext returns a context that carries info.
func NewContext(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, contextKey{}, info)
}

// FromContext returns what NewContext put into ctx, and without that an Info of which only the ID is set, to a new one.
func FromContext(ctx context.Context) Info {
	info, ok := ctx.Value(contextKey{}).(Info)
	if !ok {
		info.ID = NewID()
	}
	return info
}
