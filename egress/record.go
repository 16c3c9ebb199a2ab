package egress

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Record says what became of one connection, or of one request over plain HTTP.
type Record struct {
	Who
	// Protocol is how it was asked for: "http", "connect" or "socks5".
	Protocol string
	// Host and Port are what was asked for, Address what it was connected to; that is not valid when nothing was, or when the
	// upstream proxy was asked.
	Host    string
	Port    uint16
	Address netip.AddrPort
	// ByProxy tells that the upstream proxy was asked.
	ByProxy bool
	// Sent and Received count bytes, from the kernel and to it.
	Sent, Received int64
	Began          time.Time
	Took           time.Duration
	// Err is why there was no connection, nil when there was one.
	Err error
}

// visit is a connection that is being made and then used.
type visit struct {
	door   *Door
	record Record
	// sent and received are counted while both directions run.
	sent, received atomic.Int64
}

func (d *Door) visit(protocol, host string, port uint16) *visit {
	if len(host) > maxHost {
		host = host[:maxHost] + "…"
	}
	return &visit{door: d, record: Record{Who: d.who, Protocol: protocol, Host: host, Port: port, Began: time.Now()}}
}

// end reports the visit.
func (v *visit) end() {
	v.record.Took = time.Since(v.record.Began)
	v.record.Sent, v.record.Received = v.sent.Load(), v.received.Load()
	v.door.g.cfg.Report(v.record)
}

// countedConn counts what goes over a visit's connection to the host.
type countedConn struct {
	net.Conn
	v *visit
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.v.received.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	c.v.sent.Add(int64(len(p))) // first: the answer may come before Write returns
	n, err := c.Conn.Write(p)
	c.v.sent.Add(int64(n - len(p)))
	return n, err
}

// CloseWrite is the connection's own.
func (c countedConn) CloseWrite() error { return closeWrite(c.Conn) }
