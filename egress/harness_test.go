package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names resolves what a test says.
type names struct {
	mu    sync.Mutex
	found map[string][]string
	asked []string
	// after, when not nil, takes the place of found behind the first question: a name whose owner changes his mind.
	after map[string][]string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	known, ok := n.found[strings.TrimSuffix(host, ".")]
	if n.after != nil {
		n.found = n.after
	}
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, a := range known {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

// door is a way out at an address of this machine, where a test's clients come instead of a sandbox's.
type door struct {
	t       *testing.T
	addr    string
	records chan Record
}

// open opens a way out. Nothing of this machine counts as its own, unless c says so.
func open(t *testing.T, p Policy, c Config) *door {
	t.Helper()
	d := &door{t: t, records: make(chan Record, 1000)}
	c.Report = func(r Record) { d.records <- r }
	if c.Interfaces == nil {
		c.Interfaces = func() ([]net.Addr, error) { return nil, nil }
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	way := g.Door(Who{Subject: "ada", Session: "s", Profile: "p"}, rules(t, p))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { way.Serve(ctx, conn, 3128) })
		}
	})
	t.Cleanup(func() { ln.Close(); cancel(); wg.Wait() })
	return d
}

// local is a policy that allows what is named, and this machine.
func local(hosts ...string) Policy {
	return Policy{Mode: Hosts, Hosts: hosts, Private: []string{"127.0.0.1"}}
}

// client goes through the door.
func (d *door) client() *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: d.addr})}
	d.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// get returns status and body.
func (d *door) get(c *http.Client, address string) (int, string) {
	d.t.Helper()
	resp, err := c.Get(address)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// record is the next one.
func (d *door) record() Record {
	d.t.Helper()
	select {
	case r := <-d.records:
		return r
	case <-time.After(time.Minute):
		d.t.Fatal("nothing was reported")
		return Record{}
	}
}

// dial is a raw connection to the door.
func (d *door) dial() net.Conn {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	d.t.Cleanup(func() { conn.Close() })
	return conn
}

// say sends raw bytes and returns all that comes back until the door closes.
func (d *door) say(text string) string {
	d.t.Helper()
	conn := d.dial()
	if _, err := io.WriteString(conn, text); err != nil {
		d.t.Fatal(err)
	}
	first := make([]byte, 1)
	n, _ := conn.Read(first)
	_ = conn.(*net.TCPConn).CloseWrite() // not before: net/http takes the end of requests for the end of whoever asks
	rest, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		d.t.Error(err)
	}
	return string(first[:n]) + string(rest)
}

// port is that of an address.
func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// offline is the resolver of a machine that reaches no DNS.
type offline struct{}

func (offline) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "connection refused", Name: host, IsTemporary: true}
}
