package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"cellblock/internal/fault"
)

// Of SOCKS5 (RFC 1928): methods, commands, kinds of addresses and replies.
const (
	socksNoAuth       = 0
	socksNoMethod     = 0xff
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	socksOK           = 0
	socksFailed       = 1
	socksForbidden    = 2
	socksUnreachable  = 4
	socksRefused      = 5
	socksNoCommand    = 7
	socksNoAddress    = 8
	socksReplyAddress = "\x01\x00\x00\x00\x00\x00\x00" // which clients have no use for
)

// errSOCKS is a request that is answered with a reply alone.
type errSOCKS byte

func (e errSOCKS) Error() string { return "SOCKS request refused" }

// serveSOCKS serves a connection as a SOCKS5 server that knows CONNECT.
func (d *Door) serveSOCKS(ctx context.Context, conn net.Conn) {
	host, port, err := readSOCKS(conn)
	if err != nil {
		if reply, ok := errors.AsType[errSOCKS](err); ok {
			_ = answerSOCKS(conn, byte(reply))
		}
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	v := d.visit(protocolSOCKS, host, port)
	defer v.end()
	out, err := v.dial(ctx)
	if err != nil {
		_ = answerSOCKS(conn, socksReply(err))
		return
	}
	if answerSOCKS(conn, socksOK) != nil {
		out.Close()
		return
	}
	join(ctx, conn, out)
}

// readSOCKS agrees on no authentication and reads the request.
func readSOCKS(conn io.ReadWriter) (host string, port uint16, err error) {
	var head [2]byte // version, number of methods
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return "", 0, err
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(conn, methods); err != nil {
		return "", 0, err
	}
	method := byte(socksNoMethod)
	for _, m := range methods {
		if m == socksNoAuth {
			method = m
		}
	}
	if _, err := conn.Write([]byte{socks5, method}); err != nil || method != socksNoAuth {
		return "", 0, errors.Join(err, io.EOF)
	}
	var request [4]byte // version, command, reserved, kind of address
	if _, err := io.ReadFull(conn, request[:]); err != nil {
		return "", 0, err
	}
	switch {
	case request[0] != socks5:
		return "", 0, errSOCKS(socksFailed)
	case request[1] != socksConnect:
		return "", 0, errSOCKS(socksNoCommand)
	}
	return readSOCKSAddress(conn, request[3])
}

func readSOCKSAddress(r io.Reader, kind byte) (host string, port uint16, err error) {
	size := 0
	switch kind {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		var length [1]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return "", 0, err
		}
		size = int(length[0])
	default:
		return "", 0, errSOCKS(socksNoAddress)
	}
	rest := make([]byte, size+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return "", 0, err
	}
	host = string(rest[:size])
	if addr, ok := netip.AddrFromSlice(rest[:size]); ok && kind != socksName {
		host = addr.Unmap().String()
	}
	return host, binary.BigEndian.Uint16(rest[size:]), nil
}

func answerSOCKS(w io.Writer, reply byte) error {
	_, err := w.Write(append([]byte{socks5, reply, 0}, socksReplyAddress...))
	return err
}

// socksReply is the reply for an error of a visit.
func socksReply(err error) byte {
	switch {
	case fault.KindOf(err) == fault.Forbidden:
		return socksForbidden
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksRefused
	case fault.KindOf(err) == fault.Unavailable:
		return socksUnreachable
	}
	return socksFailed
}

var _ net.Conn = (*bufferedConn)(nil)
