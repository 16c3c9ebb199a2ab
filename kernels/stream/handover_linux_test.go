package stream

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func listenHere(t *testing.T) (l *net.UnixListener, path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	return l, path
}

// Who takes a socket over serves it, as long as he lives and no longer.
func TestHandover(t *testing.T) {
	l, path := listenHere(t)
	gave := make(chan error, 1)
	go func() { gave <- GiveListener(t.Context(), l) }()
	taken, err := TakeListener(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-gave; err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		conn, err := taken.Accept()
		if err == nil {
			_, err = conn.Write([]byte("x"))
			err = errors.Join(err, conn.Close())
		}
		served <- err
	}()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := taken.Close(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		t.Error("somebody else listens still")
	}
}

// Nobody comes, or one who says nothing: the giver does not wait for longer than he wants to.
func TestHandoverToNobody(t *testing.T) {
	for name, come := range map[string]bool{"nobody": false, "a mute": true} {
		t.Run(name, func(t *testing.T) {
			l, path := listenHere(t)
			leave := func() error { return nil }
			if come {
				conn, err := net.Dial("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				leave = conn.Close
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			if err := GiveListener(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			_ = leave() // the socket may be on its way to him
			if _, err := TakeListener(path); err == nil {
				t.Error("the socket is still there to be taken")
			}
		})
	}
}

// A server that ends before it has handed the socket over leaves nothing that a shim would wait for.
func TestHandoverFromNobody(t *testing.T) {
	l, path := listenHere(t)
	go func() {
		if conn, err := l.Accept(); err == nil {
			_ = conn.Close()
		}
	}()
	defer l.Close()
	if got, err := TakeListener(path); err == nil {
		t.Errorf("got %v", got.Addr())
	}
}
