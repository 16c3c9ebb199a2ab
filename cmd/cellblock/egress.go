package main

import (
	"net"
	"net/netip"
	"strconv"

	"cellblock/audit"
	"cellblock/egress"
	"cellblock/internal/fault"
)

// egress is what the configuration says of a gateway.
func (c *Config) egress() egress.Config {
	return egress.Config{Proxy: c.Network.Proxy, NoProxy: c.Network.NoProxy}
}

// gateway returns what connects kernels to hosts. Where this server listens nothing is connected to.
func (a *app) gateway(cfg *Config, listening net.Addr) (*egress.Gateway, error) {
	c := cfg.egress()
	if at, ok := listening.(*net.TCPAddr); ok {
		c.Listening = []netip.AddrPort{at.AddrPort()}
	}
	if a.audit != nil {
		c.Report = func(r egress.Record) { a.audit.Append(connectedEntry(r)) }
	}
	return egress.New(c)
}

// connectedEntry tells the audit log of a connection.
func connectedEntry(r egress.Record) audit.Entry {
	e := audit.Entry{
		Event: audit.Connected, Issuer: r.Issuer, Subject: r.Subject, Session: r.Session, Profile: r.Profile,
		Protocol: r.Protocol, Host: net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))),
		SentBytes: r.Sent, ReceivedBytes: r.Received, Seconds: r.Took.Seconds(), Status: "ok",
	}
	switch {
	case r.ByProxy:
		e.Target = "proxy"
	case r.Address.IsValid():
		e.Target = r.Address.String()
	}
	if r.Err != nil {
		e.Status, e.Reason = fault.KindOf(r.Err).String(), r.Err.Error()
	}
	return e
}
