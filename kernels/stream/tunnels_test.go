package stream

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// tunnelSide is one end of a stream that carries only tunnels.
type tunnelSide struct {
	*Tunnels
	conn  net.Conn
	fault chan error // what ended its reader
}

// tunnelPair is both ends; what the shim's opens comes out of opened.
func tunnelPair(t testing.TB) (shim, server *tunnelSide, opened chan *Tunnel) {
	a, b := net.Pipe()
	opened = make(chan *Tunnel, 4*MaxTunnels)
	shim, server = newTunnelSide(a, nil), newTunnelSide(b, func(c *Tunnel) error { opened <- c; return nil })
	t.Cleanup(func() { a.Close(); b.Close(); <-shim.fault; <-server.fault })
	return shim, server, opened
}

func newTunnelSide(conn net.Conn, opened func(*Tunnel) error) *tunnelSide {
	w := NewWriter(conn)
	s := &tunnelSide{conn: conn, fault: make(chan error, 1)}
	s.Tunnels = NewTunnels(func(f func(*Writer) error) error { return f(w) }, opened)
	go func() {
		defer s.Tunnels.Close()
		r := NewReader(conn, 1<<20)
		for {
			f, err := r.ReadFrame()
			if err == nil {
				err = s.Receive(f)
			}
			if err != nil {
				conn.Close()
				s.fault <- err
				return
			}
		}
	}()
	return s
}

func mustOpen(t testing.TB, s *tunnelSide, opened chan *Tunnel) (here, there *Tunnel) {
	t.Helper()
	here, err := s.Open(3128)
	if err != nil {
		t.Fatal(err)
	}
	there = <-opened
	if there.Port() != 3128 {
		t.Fatalf("port %d", there.Port())
	}
	return here, there
}

func TestTunnelIsAConn(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		shim, _, opened := tunnelPair(t)
		here, there := mustOpen(t, shim, opened)
		return here, there, func() { here.Close(); there.Close() }, nil
	})
}

func TestTunnelCarriesAllAndEndsEachWay(t *testing.T) {
	shim, server, opened := tunnelPair(t)
	data := make([]byte, 5*TunnelWindow+17)
	rand.Read(data)
	var wg sync.WaitGroup
	for range 8 {
		here, there := mustOpen(t, shim, opened)
		for _, c := range []*Tunnel{here, there} {
			wg.Go(func() {
				if n, err := c.Write(data); n != len(data) || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
				if err := c.CloseWrite(); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				got, err := io.ReadAll(c)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			})
		}
	}
	wg.Wait()
	awaitNone(t, shim, server)
}

// awaitNone waits until neither side has a tunnel.
func awaitNone(t *testing.T, sides ...*tunnelSide) {
	t.Helper()
	for _, s := range sides {
		await(t, s, func() bool { return len(s.open) == 0 })
	}
}

// await waits until ok, which is called with the side's lock held, returns true.
func await(t *testing.T, s *tunnelSide, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		met, n := ok(), len(s.open)
		s.mu.Unlock()
		if met {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("it does not come about; %d tunnels are open", n)
		}
	}
}

func TestTunnelClosedArrivesWhole(t *testing.T) {
	shim, server, opened := tunnelPair(t)
	here, there := mustOpen(t, shim, opened)
	if _, err := there.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(here); string(got) != "last words" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	here.Wait() // the other side reads no more, either
	if _, err := here.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing to a closed tunnel: %v", err)
	}
	here.Close()
	awaitNone(t, shim, server)
}

func TestTunnelResetIsAnError(t *testing.T) {
	shim, server, opened := tunnelPair(t)
	here, there := mustOpen(t, shim, opened)
	if _, err := here.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	here.Reset()
	if _, err := io.ReadAll(there); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
	awaitNone(t, shim, server)
}

// A tunnel that nobody reads stops its own writer, and nothing else.
func TestTunnelThatNobodyReads(t *testing.T) {
	shim, _, opened := tunnelPair(t)
	stuck, unread := mustOpen(t, shim, opened)
	wrote := make(chan int)
	go func() {
		n, err := stuck.Write(make([]byte, 10*TunnelWindow))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		wrote <- n
	}()
	await(t, shim, func() bool { return stuck.credit == 0 })
	_ = stuck.SetWriteDeadline(time.Now())
	if n := <-wrote; n != TunnelWindow {
		t.Fatalf("%d bytes were taken", n)
	}
	here, there := mustOpen(t, shim, opened)
	go here.Write([]byte("ping"))
	got := make([]byte, 4)
	if _, err := io.ReadFull(there, got); err != nil {
		t.Fatal(err)
	}
	_ = stuck.SetWriteDeadline(time.Time{})
	go func() { stuck.Write([]byte("more")); stuck.CloseWrite() }()
	if all, err := io.ReadAll(unread); len(all) != TunnelWindow+4 || err != nil {
		t.Errorf("%d bytes, %v", len(all), err)
	}
}

func TestTunnelsAreBounded(t *testing.T) {
	shim, server, opened := tunnelPair(t)
	var wg sync.WaitGroup
	for range 4 * MaxTunnels { // a flood in which slots are freed and taken again all the time
		wg.Go(func() {
			c, err := shim.Open(1)
			if errors.Is(err, ErrTunnels) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Write([]byte("x")); err != nil {
				t.Error(err)
			}
			c.Close()
		})
	}
	wg.Wait()
	awaitNone(t, shim)
	for len(opened) > 0 {
		(<-opened).Close()
	}
	awaitNone(t, server)
	for range MaxTunnels {
		if _, err := shim.Open(1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := shim.Open(1); !errors.Is(err, ErrTunnels) {
		t.Errorf("one too many: %v", err)
	}
}

func TestTunnelsEndWithTheirConnection(t *testing.T) {
	shim, _, opened := tunnelPair(t)
	here, there := mustOpen(t, shim, opened)
	shim.conn.Close()
	for _, c := range []*Tunnel{here, there} {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reading: %v", err)
		}
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("written to nobody")
		}
	}
	if _, err := shim.Open(1); !errors.Is(err, net.ErrClosed) {
		t.Errorf("opening: %v", err)
	}
}

func TestTunnelFramesThatBreakTheRules(t *testing.T) {
	id := func(n uint32, rest ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	open := Frame{FrameTunnelOpen, id(1, 0, 80)}
	full := make([]byte, MaxTunnelData)
	var over []Frame
	for range TunnelWindow/MaxTunnelData + 1 {
		over = append(over, Frame{FrameTunnelData, id(1, full...)})
	}
	many := make([]Frame, 0, MaxTunnels+1)
	for n := range uint32(MaxTunnels + 1) {
		many = append(many, Frame{FrameTunnelOpen, id(n, 0, 80)})
	}
	for name, frames := range map[string][]Frame{
		"no number":       {{FrameTunnelData, []byte{1, 2, 3}}},
		"opened twice":    {open, open},
		"open too long":   {{FrameTunnelOpen, id(1, 0, 80, 0)}},
		"too many":        many,
		"empty data":      {open, {FrameTunnelData, id(1)}},
		"too much data":   {open, {FrameTunnelData, id(1, append(full, 0)...)}},
		"over the window": append([]Frame{open}, over...),
		"behind the end":  {open, {FrameTunnelEnd, id(1)}, {FrameTunnelData, id(1, 1)}},
		"end with text":   {open, {FrameTunnelEnd, id(1, 1)}},
		"short credit":    {open, {FrameTunnelCredit, id(1, 1)}},
		"too much credit": {open, {FrameTunnelCredit, id(1, 0, 0, 0, 1)}},
		"huge credit":     {open, {FrameTunnelCredit, id(1, 255, 255, 255, 255)}},
	} {
		server := NewTunnels(func(func(*Writer) error) error { return nil }, func(*Tunnel) error { return nil })
		var err error
		for i, f := range frames {
			if err = server.Receive(f); (err != nil) != (i == len(frames)-1) {
				t.Errorf("%s: frame %d: %v", name, i, err)
				break
			}
		}
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	shim := NewTunnels(nil, nil)
	if err := shim.Receive(open); !errors.Is(err, ErrMalformed) {
		t.Errorf("a server that opens a tunnel: %v", err)
	}
	if err := shim.Receive(Frame{FrameTunnelData, id(7, 1)}); err != nil {
		t.Errorf("data for a tunnel that has ended here: %v", err)
	}
}

// FuzzTunnels has the server take frames of a shim that says what it likes: it holds no more than the windows.
func FuzzTunnels(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 1, 1, 9, 3, 1, 0, 4, 1, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		var held []*Tunnel
		server := NewTunnels(func(func(*Writer) error) error { return nil }, func(c *Tunnel) error { held = append(held, c); return nil })
		for len(script) >= 3 { // type, tunnel, length
			n := min(int(script[2])*100, 20000)
			payload := append([]byte{0, 0, 0, script[1]}, make([]byte, n)...)
			if script[0]%5 == 0 {
				payload = append(payload[:4], 0, 80)
			}
			if server.Receive(Frame{FrameTunnelOpen + FrameType(script[0]%5), payload}) != nil {
				break
			}
			script = script[3:]
		}
		server.mu.Lock()
		if len(server.open) > MaxTunnels {
			t.Errorf("%d tunnels", len(server.open))
		}
		server.mu.Unlock()
		server.Close()
		for _, c := range held {
			if n, _ := io.Copy(io.Discard, c); n > TunnelWindow {
				t.Errorf("%d bytes were held", n)
			}
		}
	})
}
