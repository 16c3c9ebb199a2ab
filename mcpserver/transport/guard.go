package transport

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/loopback"
)

// Guard refuses requests that a foreign web page made a browser send. MCP demands the check of Origin; the check of Host
// is for DNS rebinding, by which a page's own name comes to mean this machine's loopback address.
type Guard struct {
	origins map[string]bool
	hosts   map[string]bool
}

// NewGuard returns a guard that allows the origins (such as "https://app.example.com"; "*" for any) and the hosts (such as
// "cells.example.com", with any port where none is given) that are named, besides those of this machine itself.
func NewGuard(origins, hosts []string) *Guard {
	g := &Guard{origins: map[string]bool{}, hosts: map[string]bool{}}
	for _, o := range origins {
		if normal, _, ok := parseOrigin(o); ok {
			o = normal
		}
		g.origins[o] = true
	}
	for _, h := range hosts {
		g.hosts[strings.ToLower(h)] = true
	}
	return g
}

type guardedKey struct{}

// Require lets only requests through that Check allows, and answers the others by refuse. The endpoint of NewHTTP leaves
// what has come through here to this guard's judgement, and applies its own to everything else.
func (g *Guard) Require(next http.Handler, refuse func(w http.ResponseWriter, r *http.Request, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Check(r); err != nil {
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), guardedKey{}, true)))
	})
}

// Check returns nil for a request that may go on, and an error of kind Forbidden for one that must not.
func (g *Guard) Check(r *http.Request) error {
	for _, origin := range r.Header.Values("Origin") {
		if !g.AllowsOrigin(origin) {
			return fault.New(fault.Forbidden, "requests from the origin %q are not allowed", clip(origin, 100)).
				WithHint("If this is your own web page, the operator must add its origin to allowed_origins (CELLBLOCK_ALLOWED_ORIGINS).")
		}
	}
	if !g.allowsHost(r) {
		return fault.New(fault.Forbidden, "requests for the host %q are not allowed: this server is known as localhost alone", clip(r.Host, 100)).
			WithHint("Use localhost or 127.0.0.1 in the URL; by another name, behind a proxy or from another container, the operator must add it to allowed_hosts (CELLBLOCK_ALLOWED_HOSTS).")
	}
	return nil
}

// AllowsOrigin reports whether pages of an origin may call.
func (g *Guard) AllowsOrigin(origin string) bool {
	_, host, ok := parseOrigin(origin)
	return g.Names(origin) || ok && loopback.Is(host)
}

// Names reports whether an origin is one of those that NewGuard was given; this machine's own are not, unless they are named.
func (g *Guard) Names(origin string) bool {
	normal, _, ok := parseOrigin(origin)
	return g.origins[origin] || ok && (g.origins["*"] || g.origins[normal])
}

// allowsHost checks the Host header of what arrived over a loopback address. Over other addresses there is nothing to
// rebind: whoever can reach them needs no browser in between.
func (g *Guard) allowsHost(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback.Is(hostOnly(local.String())) {
		return true
	}
	host := strings.ToLower(r.Host)
	return loopback.Is(hostOnly(host)) || g.hosts[host] || g.hosts[hostOnly(host)]
}

// IsOrigin tells whether a text is an origin as browsers send it (RFC 6454, 6.2): a scheme and a host, perhaps a port, and no path.
func IsOrigin(text string) bool {
	_, _, ok := parseOrigin(text)
	return ok
}

// parseOrigin returns an origin's usual spelling, without a default port, and its host.
func parseOrigin(origin string) (normal, host string, ok bool) {
	u, err := url.Parse(strings.ToLower(origin))
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", false
	}
	authority := u.Host
	if port := u.Port(); (u.Scheme == "http" && port == "80") || (u.Scheme == "https" && port == "443") {
		authority = strings.TrimSuffix(authority, ":"+port)
	}
	return u.Scheme + "://" + authority, u.Hostname(), true
}

// hostOnly takes the port off a host, and the brackets off an IPv6 address.
func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}
