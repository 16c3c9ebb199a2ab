package egress

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"cellblock/internal/fault"
)

// How a connection is asked for.
const (
	protocolHTTP    = "http"
	protocolConnect = "connect"
	protocolSOCKS   = "socks5"
)

// maxHead bounds the head of a request, and of an answer, in bytes.
const maxHead = 64 << 10

// serveHTTP serves a connection as an HTTP proxy (RFC 9110, 3.7): requests for http: addresses are made anew, each decided for
// itself, and CONNECT opens a connection.
func (d *Door) serveHTTP(ctx context.Context, conn net.Conn) {
	l := &soleListener{conn: conn, closed: make(chan struct{})}
	var serving sync.WaitGroup
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serving.Add(1)
			defer serving.Done()
			d.request(ctx, w, r)
		}),
		ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHead,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // what users' code sends is its own business
	}
	_ = server.Serve(l) // ends with the connection
	serving.Wait()
}

// soleListener is a listener to which one connection comes. It ends with that.
type soleListener struct {
	conn   net.Conn
	taken  bool
	once   sync.Once
	closed chan struct{}
}

// Accept returns the connection, and then waits for its end.
func (l *soleListener) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return &soleConn{l.conn, l}, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close ends the connection.
func (l *soleListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.conn.Close()
}

// Addr is the connection's.
func (l *soleListener) Addr() net.Addr { return l.conn.LocalAddr() }

// soleConn ends its listener when it is closed.
type soleConn struct {
	net.Conn
	l *soleListener
}

func (c *soleConn) Close() error      { return c.l.Close() }
func (c *soleConn) CloseWrite() error { return closeWrite(c.Conn) }

// request serves one request.
func (d *Door) request(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		d.tunnel(ctx, w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		d.forward(w, r)
	default:
		refuse(w, fault.New(fault.Invalid, "this is a proxy: ask it for http://… or CONNECT"))
	}
}

// forward makes a request anew. The host is the address's: a Host header that names another is not passed on (RFC 9112, 3.2.2).
// No protocol is switched to: over it no further request could be decided about.
func (d *Door) forward(w http.ResponseWriter, r *http.Request) {
	host, port := splitTarget(r.URL.Host, 80)
	v := d.visit(protocolHTTP, host, port)
	defer v.end()
	conn, err := v.dial(r.Context())
	if err != nil {
		refuseRequest(w, r, err)
		return
	}
	defer conn.Close()
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHead,
	}
	if v.record.ByProxy {
		transport.Proxy = func(*http.Request) (*url.URL, error) { return d.plainProxy(host, port), nil }
	}
	proxy := httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Header.Del("Upgrade")
			p.Out.Header.Del("Connection")
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode == http.StatusSwitchingProtocols {
				return errors.New("the host switches protocols, which was not asked for")
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, fault.New(fault.Unavailable, "no answer from %s: %w", v.record.Host, err))
		},
	}
	proxy.ServeHTTP(w, r)
}

// plainProxy is the upstream proxy as http.Transport wants it: the connection to it, with TLS if it has any, is made already.
func (d *Door) plainProxy(host string, port uint16) *url.URL {
	u := *d.proxyFor(host, port, protocolHTTP)
	u.Scheme = "http"
	return &u
}

// tunnel serves CONNECT.
func (d *Door) tunnel(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	in, buffered, err := http.NewResponseController(w).Hijack() // first: a client that sends its last early would be taken for one that is gone
	if err != nil {
		refuse(w, fault.New(fault.Unavailable, "the connection cannot be led through: %w", err)) // else it is said to be
		return
	}
	defer in.Close()
	host, port := splitTarget(r.RequestURI, 0)
	v := d.visit(protocolConnect, host, port)
	defer v.end()
	out, err := v.dial(ctx)
	if err != nil {
		refuseTunnel(in, err)
		return
	}
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		out.Close()
		return
	}
	join(ctx, ahead(in, buffered.Reader), out)
}

// ahead is a connection with what was read of it before it was taken over.
func ahead(conn net.Conn, r *bufio.Reader) net.Conn {
	if r.Buffered() == 0 {
		return conn
	}
	return &bufferedConn{Conn: conn, r: r}
}

// splitTarget splits a host and a port; 0 where there should be one and is none.
func splitTarget(target string, otherwise uint16) (string, uint16) {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return strings.Trim(target, "[]"), otherwise
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return host, 0
	}
	return host, uint16(port)
}

// status is the HTTP status for an error of a visit.
func status(err error) int {
	switch fault.KindOf(err) {
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Busy:
		return http.StatusTooManyRequests
	case fault.Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// sentence is what an error says to whoever runs the code, in one line.
func sentence(err error) string {
	text := "cellblock: " + err.Error()
	if hint := fault.Hint(err); hint != "" {
		text += ". " + hint
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
	return clean[:min(len(clean), 600)]
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status(err))
	_, _ = io.WriteString(w, sentence(err)+"\n") // whoever asked may have gone
}

// refuseRequest answers a request that is not made anew. Where nothing of it is still to come, the reason stands behind the status,
// too: many clients show no more of an answer, and the host would seem to have given it.
func refuseRequest(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 {
		refuse(w, err)
		return
	}
	conn, _, failed := http.NewResponseController(w).Hijack()
	if failed != nil {
		refuse(w, err)
		return
	}
	defer conn.Close()
	refuseTunnel(conn, err)
}

// refuseTunnel answers CONNECT. Most clients show nothing of such an answer but the text behind the status.
func refuseTunnel(conn net.Conn, err error) {
	code, text := status(err), sentence(err)
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		code, cmp.Or(http.StatusText(code), "Refused")+" ("+text+")", len(text)+1, text)
}
