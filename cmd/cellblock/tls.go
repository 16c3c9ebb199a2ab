package main

import (
	"log/slog"
	"net"

	"cellblock/web"
)

// scheme is how the server is spoken to where no proxy stands before it.
func (c *Config) scheme() string {
	if c.TLS.Cert != "" {
		return "https"
	}
	return "http"
}

// certificates are what HTTPS is served with, nil for HTTP.
func (c *Config) certificates(logger *slog.Logger) (*web.Certificates, error) {
	if c.TLS.Cert == "" {
		return nil, nil
	}
	return web.LoadCertificates(c.TLS.Cert, c.TLS.Key, logger)
}

func closeCertificates(c *web.Certificates) {
	if c != nil {
		_ = c.Close() // the process ends
	}
}

// localURL is the endpoint by which this machine's programs reach the server. A certificate is for a name, which only the
// public address has.
func (c *Config) localURL(listening net.Addr) string {
	if c.TLS.Cert != "" && c.PublicURL != "" {
		return c.PublicURL + "/mcp"
	}
	return localURL(c.scheme(), listening)
}
