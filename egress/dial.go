package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellblock/internal/fault"
)

const (
	// dialTimeout bounds all that happens until there is a connection, tryTimeout one of several addresses.
	dialTimeout = 30 * time.Second
	tryTimeout  = 8 * time.Second
	// maxAddresses is how many addresses of a name are looked at.
	maxAddresses = 16
)

// dial connects to the visit's host, if the rules allow it. The error is a *fault.Error, and the record has it too: Forbidden, by
// the rules; Invalid, for no host at all; Unavailable, for what cannot be reached; or a context's.
func (v *visit) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := v.connect(ctx)
	if err != nil {
		v.record.Err = err
		return nil, err
	}
	return countedConn{conn, v}, nil
}

func (v *visit) connect(ctx context.Context) (net.Conn, error) {
	route, err := v.route(ctx)
	if err != nil {
		return nil, err
	}
	if route.proxy == nil {
		return v.connectDirect(ctx, route)
	}
	v.record.ByProxy = true
	if v.record.Protocol == protocolHTTP {
		return dialProxy(ctx, route.proxy)
	}
	return tunnelThrough(ctx, route.proxy, net.JoinHostPort(route.name, strconv.Itoa(int(v.record.Port))))
}

// route is how a host is reached: through a proxy, or at one of its addresses, all of which are allowed.
type route struct {
	name      string
	addresses []netip.AddrPort
	proxy     *url.URL
}

// route decides whether and how the visit's host is reached.
func (v *visit) route(ctx context.Context) (route, error) {
	d := v.door
	if err := d.limiter.Wait(ctx); err != nil { // first: what is refused is told of, too
		return route{}, fault.New(fault.Busy, "the kernel makes too many connections at once")
	}
	name, err := d.rules.CheckHost(v.record.Host, v.record.Port)
	if err != nil {
		return route{}, err
	}
	r := route{name: name, proxy: d.proxyFor(name, v.record.Port, v.record.Protocol)}
	found, err := d.resolve(ctx, name)
	if err != nil {
		if r.proxy != nil && ctx.Err() == nil {
			return r, nil
		}
		return r, err
	}
	var refused error
	for _, addr := range found[:min(len(found), maxAddresses)] {
		at := netip.AddrPortFrom(addr.Unmap(), v.record.Port)
		if err := d.checkAddress(at); err != nil {
			refused = err
			continue
		}
		r.addresses = append(r.addresses, at)
	}
	if len(r.addresses) == 0 {
		return r, refused
	}
	return r, nil
}

// proxyFor returns the upstream proxy for a host, nil where it is reached directly.
func (d *Door) proxyFor(name string, port uint16, protocol string) *url.URL {
	scheme := "https"
	if protocol == protocolHTTP {
		scheme = "http"
	}
	u, err := d.g.upstream(&url.URL{Scheme: scheme, Host: net.JoinHostPort(name, strconv.Itoa(int(port)))})
	if err != nil {
		return nil
	}
	return u
}

// Unresolved is in what a kernel's program is told where this machine cannot find out whether there is such a host: it is offline, or
// its DNS does not answer.
const Unresolved = "could not be resolved now"

// resolve returns at least one address of a name. The dot behind a name with others keeps this machine's search domains out.
func (d *Door) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{addr}, nil
	}
	asked := name
	if strings.Contains(name, ".") {
		asked += "."
	}
	found, err := d.g.cfg.Resolver.LookupNetIP(ctx, "ip", asked)
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound || err == nil && len(found) == 0 {
		return nil, fault.New(fault.Unavailable, "there is no host %s", name)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the name %s "+Unresolved, name)
	}
	return found, nil
}

// checkAddress decides about an address: the rules, and that neither this server nor, unless an exception names it, this machine
// is reached.
func (d *Door) checkAddress(at netip.AddrPort) error {
	if err := d.rules.CheckAddress(at); err != nil {
		return err
	}
	own, err := d.g.own()
	if err != nil {
		return fault.New(fault.Unavailable, "this machine's own addresses could not be looked up")
	}
	here := at.Addr().IsLoopback() || at.Addr().IsUnspecified() || slices.Contains(own, at.Addr())
	for _, l := range d.g.cfg.Listening {
		where := l.Addr().Unmap()
		if l.Port() == at.Port() && (where == at.Addr() || here && (where.IsUnspecified() || at.Addr().IsUnspecified())) {
			return fault.New(fault.Forbidden, "the address %s is the server's own, which runs this session", at.Addr())
		}
	}
	if here && !d.rules.excepts(at.Addr(), at.Port()) {
		return fault.New(fault.Forbidden, "the address %s is this machine's own", at.Addr())
	}
	return nil
}

// own returns the addresses of this machine's interfaces.
func (g *Gateway) own() ([]netip.Addr, error) {
	all, err := g.cfg.Interfaces()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr().Unmap().WithZone(""))
		}
	}
	return own, nil
}

// connectDirect connects to the first of a route's addresses that answers.
func (v *visit) connectDirect(ctx context.Context, r route) (net.Conn, error) {
	var failed error
	for i, at := range r.addresses {
		dialer := net.Dialer{}
		if i < len(r.addresses)-1 {
			dialer.Timeout = tryTimeout
		}
		conn, err := dialer.DialContext(ctx, "tcp", at.String())
		if err == nil {
			v.record.Address = at
			return conn, nil
		}
		failed = err
	}
	return nil, unreachable(r.name, failed)
}

func unreachable(name string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err // without the address, which is of no use to whoever asked for a name
	}
	return fault.New(fault.Unavailable, "no connection to %s: %w", name, err)
}
