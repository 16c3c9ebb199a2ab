package main

import (
	"net/netip"
	"net/url"
	"strings"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/web"
)

// minAuditFile is the least that a file of the audit log may hold: one line with the code of a cell, and more.
const minAuditFile = 4 << 20

// checkAccess refuses settings of who gets in, and what is written of it, that cannot hold.
func (c *Config) checkAccess() error {
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		return fault.New(fault.Invalid, "configuration: only one of tls.cert and tls.key is set").
			WithHint("Name the certificate with its chain, and its key, both as PEM files.")
	}
	if c.Audit.MaxBytes < minAuditFile {
		return fault.New(fault.Invalid, "configuration: audit.max_bytes is %d", c.Audit.MaxBytes).WithHint("Use at least 4MB, such as 64MB.")
	}
	if c.Audit.Required && !c.Audit.Enabled {
		return fault.New(fault.Invalid, "configuration: audit.required is set, and audit.enabled is not").WithHint("Set both, or none.")
	}
	if c.Metrics.Addr != "" && !c.Metrics.Enabled {
		return fault.New(fault.Invalid, "configuration: metrics.addr is set, and metrics.enabled is not").WithHint("Set both, or none.")
	}
	if c.Calls.PerMinute < 0 || c.Calls.PerMinute > 0 && c.Calls.Burst < 1 {
		return fault.New(fault.Invalid, "configuration: calls.per_minute is %d and calls.burst is %d", c.Calls.PerMinute, c.Calls.Burst).
			WithHint("Use numbers above 0, such as 600 and 100, or 0 calls a minute for no limit.")
	}
	for _, origin := range c.AllowedOrigins {
		if !transport.IsOrigin(origin) {
			return fault.New(fault.Invalid, "configuration: allowed_origins: %q is no origin", origin).WithHint("Write it as https://notebooks.example.com, with a port where it has one.")
		}
	}
	for _, host := range c.AllowedHosts {
		if !isHost(host) {
			return fault.New(fault.Invalid, "configuration: allowed_hosts: %q is no host", host).
				WithHint("Write a name as cells.example.com, with a port where only that is meant; names below one are named each.")
		}
	}
	if err := c.HTTP.check(); err != nil {
		return err
	}
	_, err := c.proxies()
	return err
}

// isHost tells whether a text is what a client can send as Host: a name or an address, perhaps with a port.
func isHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true // of IPv6, without brackets
	}
	u, err := url.Parse("//" + text)
	return err == nil && u.Host == text && u.Hostname() != "" && !strings.ContainsAny(text, "*, ")
}

// check refuses limits below nothing, and shares that are no shares.
func (h HTTPConfig) check() error {
	for _, limit := range []struct {
		key, shareKey string
		most, share   int
	}{
		{"max_connections", "connections_per_client", h.MaxConnections, h.ConnectionsPerClient},
		{"max_requests", "requests_per_owner", h.MaxRequests, h.RequestsPerOwner},
	} {
		if limit.most < 0 || limit.share < 0 || limit.most > 0 && limit.share > limit.most {
			return fault.New(fault.Invalid, "configuration: http.%s is %d and http.%s is %d", limit.key, limit.most, limit.shareKey, limit.share).
				WithHint("Use numbers above 0, the second not above the first, or 0 for no limit.")
		}
	}
	return nil
}

// limits are those of the configuration as package web wants them.
func (h HTTPConfig) limits() web.Limits {
	return web.Limits{
		Connections: h.MaxConnections, PerClient: h.ConnectionsPerClient, Requests: h.MaxRequests, PerOwner: h.RequestsPerOwner,
	}
}

// proxies are the networks of trusted_proxies.
func (c *Config) proxies() (networks []netip.Prefix, err error) {
	for _, text := range c.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if !strings.Contains(text, "/") {
			var addr netip.Addr
			addr, err = netip.ParseAddr(text)
			network = netip.PrefixFrom(addr, addr.BitLen())
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "configuration: trusted_proxies: %q is no address and no network", text).
				WithHint("Use addresses as 10.0.0.7 or networks as 10.0.0.0/8.")
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// limiter bounds how often an owner calls. In dev mode, where all owners are one person, nothing does.
func (c *Config) limiter(dev bool) *mcpserver.Limiter {
	if dev || c.Calls.PerMinute == 0 {
		return nil
	}
	return mcpserver.NewLimiter(c.Calls.PerMinute, c.Calls.Burst)
}
