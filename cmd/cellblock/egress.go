package main

import (
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"

	"cellblock/audit"
	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// egress is what the configuration says of a gateway.
func (c *Config) egress() egress.Config {
	return egress.Config{Proxy: c.Network.Proxy, NoProxy: c.Network.NoProxy}
}

// maxCAFile bounds network.ca_file, which travels to each kernel in a variable, in bytes.
const maxCAFile = 64 << 10

// authorities reads the certificates that kernels trust besides their image's.
func (n NetworkConfig) authorities() (string, error) {
	if n.CAFile == "" {
		return "", nil
	}
	f, err := os.Open(n.CAFile)
	if err != nil {
		return "", fault.New(fault.Invalid, "configuration: network.ca_file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCAFile+1))
	if err != nil {
		return "", fault.New(fault.Invalid, "configuration: network.ca_file: %w", err)
	}
	if len(text) > maxCAFile || !x509.NewCertPool().AppendCertsFromPEM(text) {
		return "", fault.New(fault.Invalid, "configuration: network.ca_file: %s has no certificates (PEM), or more than %s", n.CAFile, words.Bytes(maxCAFile)).
			WithHint("Name a file with the certificates of your own authorities alone: those of the images are trusted anyway.")
	}
	return string(text), nil
}

// gateway returns what connects kernels to hosts. Where this server listens nothing is connected to.
func (a *app) gateway(cfg *Config, listening net.Addr) (*egress.Gateway, error) {
	c := cfg.egress()
	c.Listening = cfg.listens(listening)
	if a.audit != nil {
		c.Report = func(r egress.Record) { a.audit.Append(connectedEntry(r)) }
	}
	return egress.New(c)
}

// listens are the addresses where this server does: for callers, and for metrics, if those have an address of their own.
func (c *Config) listens(callers net.Addr) (all []netip.AddrPort) {
	if at, ok := callers.(*net.TCPAddr); ok {
		all = append(all, at.AddrPort())
	}
	if !c.Metrics.Enabled || c.Metrics.Addr == "" {
		return all
	}
	if at, err := net.ResolveTCPAddr("tcp", c.Metrics.Addr); err == nil { // else nothing will listen there
		if at.IP == nil { // ":9090"
			at.IP = net.IPv6unspecified
		}
		all = append(all, at.AddrPort())
	}
	return all
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
