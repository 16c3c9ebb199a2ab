package egress

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/time/rate"

	"cellblock/internal/fault"
)

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config says how a Gateway works. The zero value connects directly and reports to nobody.
type Config struct {
	// Proxy is the HTTP proxy through which this machine reaches others, as "http://proxy.example.com:3128"; empty: there is none.
	// NoProxy are hosts, networks and domains that are reached without it, as in the environment variable NO_PROXY. Names that
	// cannot be resolved here are left to the proxy, and so is what they resolve to.
	Proxy, NoProxy string
	// Listening is where this server itself listens. No exception of a Policy opens that.
	Listening []netip.AddrPort
	// Report is told of each connection when it has ended, or was refused, and must not wait. Nil: nobody is told.
	Report func(Record)
	// Resolver is net.DefaultResolver when nil.
	Resolver Resolver
	// Interfaces returns this machine's addresses; net.InterfaceAddrs when nil.
	Interfaces func() ([]net.Addr, error)
}

// Gateway connects what comes out of sandboxes. It holds nothing: connections are those of who calls Door.Serve.
type Gateway struct {
	cfg      Config
	upstream func(*url.URL) (*url.URL, error)
}

// New returns a gateway. The error is Invalid.
func New(c Config) (*Gateway, error) {
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.Interfaces == nil {
		c.Interfaces = net.InterfaceAddrs
	}
	if c.Report == nil {
		c.Report = func(Record) {}
	}
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fault.New(fault.Invalid, "network.proxy is not an address of an HTTP proxy").
				WithHint("Write http://proxy.example.com:3128.")
		}
	}
	proxies := httpproxy.Config{HTTPProxy: c.Proxy, HTTPSProxy: c.Proxy, NoProxy: c.NoProxy}
	return &Gateway{cfg: c, upstream: proxies.ProxyFunc()}, nil
}

// Who is on whose behalf connections are made.
type Who struct {
	Issuer, Subject, Session, Profile string
}

// A kernel makes so many connections at once, and then so many a second; more wait. Each is a line of the audit log.
const (
	burst     = 200
	perSecond = 50
)

// Door is the way out of one session's kernels.
type Door struct {
	g       *Gateway
	who     Who
	rules   *Rules
	limiter *rate.Limiter
}

// Door returns a way out by rules.
func (g *Gateway) Door(who Who, rules *Rules) *Door {
	return &Door{g: g, who: who, rules: rules, limiter: rate.NewLimiter(perSecond, burst)}
}

const (
	// headTimeout is how long a client may take to say what it wants, idleTimeout how long it may keep a connection over which it
	// asks nothing.
	headTimeout = 30 * time.Second
	idleTimeout = 2 * time.Minute
	// socks5 is the first byte of that protocol (RFC 1928, 3).
	socks5 = 5
	// socks4 is that of the protocol before it, which knows no names, and the answer that ends it.
	socks4         = 4
	socks4Rejected = "\x00\x5b\x00\x00\x00\x00\x00\x00"
)

// Serve serves a connection of a program in the sandbox: by HTTP or SOCKS5, as its first byte says. It returns when the connection
// is closed, soon after ctx has ended.
func (d *Door) Serve(ctx context.Context, conn net.Conn, _ int) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(headTimeout))
	r := bufio.NewReaderSize(conn, 512)
	first, err := r.Peek(1)
	if err != nil {
		return
	}
	c := &bufferedConn{Conn: conn, r: r}
	switch first[0] {
	case socks5:
		d.serveSOCKS(ctx, c)
	case socks4:
		_, _ = io.WriteString(conn, socks4Rejected)
	default:
		_ = conn.SetReadDeadline(time.Time{})
		d.serveHTTP(ctx, c)
	}
}

// bufferedConn is a connection of which something has been read ahead.
type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite ends what is written, where the connection can do that alone.
func (c *bufferedConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
