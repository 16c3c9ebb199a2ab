package stream

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// What was written has been dealt with when HangUp returns, and what comes meanwhile disturbs nobody.
func TestHangUp(t *testing.T) {
	tests := map[string]func(t *testing.T) (client, server net.Conn){
		"socket":         sockets,
		"attached pipes": func(t *testing.T) (client, server net.Conn) { return newPipes(t).attach(t) },
	}
	for name, connect := range tests {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t)
			var dealtWith atomic.Bool
			served := make(chan error, 1)
			go func() {
				_, err := server.Write(make([]byte, 100_000))
				got, readErr := io.ReadAll(server)
				dealtWith.Store(string(got) == "acknowledged")
				served <- errors.Join(err, readErr, server.Close())
			}()
			if _, err := client.Write([]byte("acknowledged")); err != nil {
				t.Fatal(err)
			}
			if err := HangUp(client, time.Minute); err != nil {
				t.Fatal(err)
			}
			if !dealtWith.Load() {
				t.Error("it did not wait")
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
			if _, err := client.Write([]byte("more")); err == nil {
				t.Error("the connection is open")
			}
		})
	}
}

func sockets(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial("unix", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// It waits no longer than it is told to, and not at all where the other end could not know.
func TestHangUpIsBounded(t *testing.T) {
	client, server := newPipes(t).attach(t)
	defer server.Close()
	if err := HangUp(client, 10*time.Millisecond); err != nil {
		t.Error(err)
	}
	here, there := net.Pipe()
	defer there.Close()
	if err := HangUp(here, time.Hour); err != nil {
		t.Error(err)
	}
}
