package egress

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/proxy"

	"cellblock/internal/fault"
)

// keeper keeps the connection that it has made.
type keeper struct{ last net.Conn }

func (k *keeper) Dial(network, address string) (conn net.Conn, err error) {
	conn, err = net.Dial(network, address)
	k.last = conn
	return conn, err
}

func TestSOCKS(t *testing.T) {
	host := echo(t)
	_, number, _ := net.SplitHostPort(host)
	d := open(t, local("db.test", "127.0.0.1"), Config{Resolver: &names{found: map[string][]string{"db.test": {"127.0.0.1"}}}})
	direct := &keeper{}
	dialer, err := proxy.SOCKS5("tcp", d.addr, nil, direct)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"db.test:" + number, host} {
		conn, err := dialer.Dial("tcp", target)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "select 1"); err != nil {
			t.Fatal(err)
		}
		_ = direct.last.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(conn); string(got) != "select 1" || err != nil {
			t.Errorf("%s: %q, %v", target, got, err)
		}
		conn.Close()
		if r := d.record(); r.Err != nil || r.Protocol != "socks5" || r.Sent != 8 || r.Received != 8 || r.Address.String() != host {
			t.Errorf("%+v", r)
		}
	}
}

func TestSOCKSRefusals(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := free.Addr().(*net.TCPAddr).Port
	free.Close()
	nobody := string([]byte{byte(closed >> 8), byte(closed)})
	d := open(t, local("127.0.0.1", "lost.test", "in.test"), Config{Resolver: &names{found: map[string][]string{"in.test": {"10.0.0.1"}}}})
	const hello, agreed = "\x05\x01\x00", "\x05\x00"
	for _, tt := range []struct {
		name, said, want string // beginnings of answers
	}{
		{"a host that is not named", hello + "\x05\x01\x00\x03\x09evil.test\x01\xbb", agreed + "\x05\x02"},
		{"a private address", hello + "\x05\x01\x00\x03\x07in.test\x01\xbb", agreed + "\x05\x02"},
		{"metadata", hello + "\x05\x01\x00\x01\xa9\xfe\xa9\xfe\x00\x50", agreed + "\x05\x02"},
		{"IPv6 loopback", hello + "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50", agreed + "\x05\x02"},
		{"nobody there", hello + "\x05\x01\x00\x01\x7f\x00\x00\x01" + nobody, agreed + "\x05\x05"},
		{"no such name", hello + "\x05\x01\x00\x03\x09lost.test\x01\xbb", agreed + "\x05\x04"},
		{"no name at all", hello + "\x05\x01\x00\x03\x00\x01\xbb", agreed + "\x05\x01"},
		{"bind", hello + "\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", agreed + "\x05\x07"},
		{"UDP", hello + "\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", agreed + "\x05\x07"},
		{"an unknown kind of address", hello + "\x05\x01\x00\x02", agreed + "\x05\x08"},
		{"another version", hello + "\x04\x01\x00\x01", agreed + "\x05\x01"},
		{"only with a password", "\x05\x01\x02", "\x05\xff"},
		{"no method", "\x05\x00", "\x05\xff"},
		{"the version before", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "\x00\x5b"},
		{"half a request", hello + "\x05\x01", agreed},
	} {
		if got := d.say(tt.said); !strings.HasPrefix(got, tt.want) || tt.want == agreed && got != agreed {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestSOCKSReply(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want byte
	}{
		{fault.New(fault.Forbidden, "no"), socksForbidden},
		{fault.New(fault.Unavailable, "no"), socksUnreachable},
		{fault.New(fault.Invalid, "no"), socksFailed},
		{errors.New("odd"), socksFailed},
	} {
		if got := socksReply(tt.err); got != tt.want {
			t.Errorf("%v: %d", tt.err, got)
		}
	}
}
