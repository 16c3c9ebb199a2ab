package egress

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"cellblock/internal/fault"
)

// maxAnswer bounds the head of an upstream proxy's answer, in bytes.
const maxAnswer = 64 << 10

// dialProxy connects to an upstream proxy, which is where its operator says: no rule is asked.
func dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	port := "80"
	if proxy.Scheme == "https" {
		port = "443"
	}
	address := net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port))
	var conn net.Conn
	var err error
	if proxy.Scheme == "https" {
		conn, err = (&tls.Dialer{}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the network's proxy does not answer")
	}
	return conn, nil
}

// tunnelThrough asks an upstream proxy for a connection to a host and port (RFC 9110, 9.3.6).
func tunnelThrough(ctx context.Context, proxy *url.URL, target string) (net.Conn, error) {
	conn, err := dialProxy(ctx, proxy)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	r, err := askTunnel(conn, proxy, target)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &bufferedConn{Conn: conn, r: r}, nil
}

func askTunnel(conn net.Conn, proxy *url.URL, target string) (*bufio.Reader, error) {
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" + authorization(proxy) + "\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, fault.New(fault.Unavailable, "the network's proxy does not answer")
	}
	bounded := &io.LimitedReader{R: conn, N: maxAnswer}
	r := bufio.NewReader(bounded)
	answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // conn is the body, and the caller's
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the network's proxy does not answer as proxies do")
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Unavailable, "the network's proxy refused a connection to %s: %d %s", target, answer.StatusCode,
			http.StatusText(answer.StatusCode))
	}
	bounded.N = 1<<63 - 1 // what follows is not its answer any more
	return r, nil
}

// authorization is the header by which a proxy knows us, or nothing.
func authorization(proxy *url.URL) string {
	if proxy.User == nil {
		return ""
	}
	password, _ := proxy.User.Password()
	credentials := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	return strings.Join([]string{"Proxy-Authorization: Basic ", credentials, "\r\n"}, "")
}
