package stream

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// pipes is a pair of pipes as a container's stdio is: in and out outlive the clients.
type pipes struct {
	server              *AttachServer
	key                 string
	toServer, fromShim  *os.File // the clients' ends
	serverIn, serverOut *os.File
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	p := &pipes{key: NewAttachKey()}
	p.serverIn, p.toServer = pipe(t)
	p.fromShim, p.serverOut = pipe(t)
	server, err := NewAttachServer(p.serverIn, p.serverOut, p.key)
	if err != nil {
		t.Fatal(err)
	}
	p.server = server
	t.Cleanup(func() {
		server.Close()
		p.toServer.Close()
	})
	return p
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// user is one client's use of the pipes: closing it leaves them open.
type user struct{ *pipes }

func (u user) Read(p []byte) (int, error)         { return u.fromShim.Read(p) }
func (u user) Write(p []byte) (int, error)        { return u.toServer.Write(p) }
func (u user) Close() error                       { return nil }
func (u user) SetReadDeadline(t time.Time) error  { return u.fromShim.SetReadDeadline(t) }
func (u user) SetWriteDeadline(t time.Time) error { return u.toServer.SetWriteDeadline(t) }

func (p *pipes) attach(t *testing.T) (client, server net.Conn) {
	t.Helper()
	client, err := AttachClient(user{p}, p.key)
	if err != nil {
		t.Fatal(err)
	}
	server, err = p.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// exchange checks that data arrives as it was sent, both ways at once.
func exchange(t *testing.T, a, b net.Conn, size int) {
	t.Helper()
	data := bytes.Repeat([]byte("0123456789abcdef\n"), size/17+1)[:size]
	errs := make(chan error, 2)
	for _, c := range []net.Conn{a, b} {
		go func() {
			_, err := c.Write(data)
			errs <- err
		}()
	}
	for _, c := range []net.Conn{a, b} {
		got := make([]byte, size)
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("exchange of %d bytes: %v", size, err)
		}
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAttach(t *testing.T) {
	p := newPipes(t)
	client, server := p.attach(t)
	for _, size := range []int{1, 100, maxChunk, maxChunk + 1, 3 << 20} {
		exchange(t, client, server, size)
	}
}

func TestAttachClose(t *testing.T) {
	t.Run("by the shim", func(t *testing.T) {
		p := newPipes(t)
		client, server := p.attach(t)
		exchange(t, client, server, 10)
		server.Close()
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("client read %v", err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, ErrReplaced) && !errors.Is(err, net.ErrClosed) {
			t.Fatalf("write after close: %v", err)
		}
	})
	t.Run("by the client", func(t *testing.T) {
		p := newPipes(t)
		client, server := p.attach(t)
		client.(*attachClient).out.write(nil)
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("server read %v", err)
		}
	})
	t.Run("pipes end", func(t *testing.T) {
		p := newPipes(t)
		_, server := p.attach(t)
		p.toServer.Close()
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("server read %v", err)
		}
		if _, err := p.server.Accept(); err != io.EOF {
			t.Fatalf("accept %v", err)
		}
	})
}

// A client that died in the middle of a frame, and another one that comes after it.
func TestAttachAgain(t *testing.T) {
	half := appendChunk(nil, bytes.Repeat([]byte("x"), 5000), nonce{})
	tests := map[string]func(t *testing.T, p *pipes, client, server net.Conn){
		"at rest":            func(*testing.T, *pipes, net.Conn, net.Conn) {},
		"half a chunk":       func(_ *testing.T, p *pipes, _, _ net.Conn) { p.toServer.Write(half[:4000]) },
		"one byte short":     func(_ *testing.T, p *pipes, _, _ net.Conn) { p.toServer.Write(half[:len(half)-1]) },
		"half a length":      func(_ *testing.T, p *pipes, _, _ net.Conn) { p.toServer.Write(half[:1]) },
		"half an opening":    func(t *testing.T, p *pipes, _, _ net.Conn) { p.toServer.Write(p.rawKey(t)[:9]) },
		"opening, no nonce":  func(t *testing.T, p *pipes, _, _ net.Conn) { p.toServer.Write(p.rawKey(t)) },
		"opening, 3 of 8":    func(t *testing.T, p *pipes, _, _ net.Conn) { p.toServer.Write(append(p.rawKey(t), 1, 2, 3)) },
		"nonsense":           func(_ *testing.T, p *pipes, _, _ net.Conn) { p.toServer.Write(bytes.Repeat([]byte{0xff}, 3000)) },
		"unread answer":      func(_ *testing.T, _ *pipes, _, server net.Conn) { server.Write(make([]byte, 1000)) },
		"writer that blocks": func(t *testing.T, p *pipes, _, server net.Conn) { blockWriter(t, p, server) },
	}
	for name, disturb := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPipes(t)
			client, server := p.attach(t)
			exchange(t, client, server, 100)
			disturb(t, p, client, server)
			next, err := AttachClient(user{p}, p.key)
			if err != nil {
				t.Fatal(err)
			}
			exchange(t, next, p.lastAccepted(t, next), 1<<20)
			if _, err := server.Write([]byte("x")); err == nil {
				t.Fatal("the old connection still writes")
			}
		})
	}
}

// lastAccepted returns the connection that really is client's: a cut opening may have made one before it.
func (p *pipes) lastAccepted(t *testing.T, client net.Conn) net.Conn {
	t.Helper()
	for {
		server, err := p.server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if server.(*attachConn).in.tag == client.(*attachClient).in.tag {
			return server
		}
	}
}

func (p *pipes) rawKey(t *testing.T) []byte {
	t.Helper()
	key, err := hex.DecodeString(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// blockWriter fills the pipe and leaves a writer stuck in it.
func blockWriter(t *testing.T, p *pipes, server net.Conn) {
	stuck := make(chan error, 1)
	full := make(chan struct{})
	go func() {
		_, err := server.Write(make([]byte, 60<<10))
		close(full)
		if err == nil {
			_, err = server.Write(make([]byte, 1<<20))
		}
		stuck <- err
	}()
	<-full
	t.Cleanup(func() {
		if err := <-stuck; err == nil {
			t.Error("the stuck writer wrote everything")
		}
	})
}

// A client whose pipes another one took must notice, not read the other's bytes.
func TestAttachReplaced(t *testing.T) {
	p := newPipes(t)
	old, server := p.attach(t)
	exchange(t, old, server, 100)
	_, server = p.attach(t)
	if _, err := server.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if n, err := old.Read(make([]byte, 2000)); !errors.Is(err, ErrReplaced) {
		t.Fatalf("read %d bytes, %v", n, err)
	}
}

// Bytes of another client in between must not be taken for a frame.
func TestAttachInterleaved(t *testing.T) {
	p := newPipes(t)
	old, _ := p.attach(t)
	client, server := p.attach(t)
	if _, err := old.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("mine")); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Read(make([]byte, 10)); !errors.Is(err, ErrReplaced) {
		t.Fatalf("read %d bytes, %v", n, err)
	}
}

func TestAttachDeadlines(t *testing.T) {
	p := newPipes(t)
	client, server := p.attach(t)
	for name, c := range map[string]net.Conn{"client": client, "server": server} {
		for _, when := range []time.Time{time.Now().Add(-time.Second), time.Now().Add(5 * time.Millisecond)} {
			if err := c.SetReadDeadline(when); err != nil {
				t.Fatal(name, err)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%s: read %v", name, err)
			}
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(name, err)
		}
	}
	exchange(t, client, server, 1000)
}

// A client that sends and is not read must not make the server hold it all.
func TestAttachServerIsBounded(t *testing.T) {
	p := newPipes(t)
	client, server := p.attach(t)
	if err := p.toServer.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Write(make([]byte, 10<<20)); err == nil {
		t.Fatalf("wrote %d bytes", n)
	}
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if n := server.(*attachConn).in.out.Len(); n > attachReady+2*maxChunk {
		t.Fatalf("holds %d bytes", n)
	}
}

func TestParseAttachKey(t *testing.T) {
	for _, key := range []string{"", "00", "zz", NewAttachKey() + "00"} {
		if _, err := ParseAttachKey(key); err == nil {
			t.Errorf("accepts %q", key)
		}
	}
}

// FuzzAttachServer: whatever came before, a connection that begins afterwards carries exactly what was sent.
func FuzzAttachServer(f *testing.F) {
	key := bytes.Repeat([]byte{openingByte, 1}, attachKeySize/2)
	f.Add([]byte{})
	f.Add(append(key, 1, 2, 3))
	f.Add(append(append(key, make([]byte, 8)...), appendChunk(nil, []byte("abc"), nonce{})...))
	f.Fuzz(func(t *testing.T, before []byte) {
		in, w := io.Pipe()
		s, err := NewAttachServer(in, io.Discard, hex.EncodeToString(key))
		if err != nil {
			t.Fatal(err)
		}
		want := nonce{9, 8, 7, 6, 5, 4, 3, 2}
		go func() {
			w.Write(before)
			w.Write(append(append([]byte{}, key...), want[:]...))
			w.Write(appendChunk(appendChunk(nil, []byte("hello"), want), nil, want))
			w.Close()
		}()
		for {
			c, err := s.Accept()
			if err != nil {
				t.Fatal("the connection was not found")
			}
			got, err := io.ReadAll(c)
			if c.(*attachConn).in.tag == want {
				if err != nil || string(got) != "hello" {
					t.Fatalf("read %q, %v", got, err)
				}
				return
			}
		}
	})
}
