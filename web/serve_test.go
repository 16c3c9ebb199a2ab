package web

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/pipes"
)

var epoch time.Time

// served is a server that runs in a bubble.
type served struct {
	*site
	l          *pipes.Listener
	stop, kill context.CancelFunc
	ended      chan error
}

func serveInBubble(t *testing.T) *served {
	s := &served{site: newSite(t), l: pipes.NewListener(), ended: make(chan error, 1)}
	var graceful, forced context.Context
	graceful, s.stop = context.WithCancel(context.Background())
	forced, s.kill = context.WithCancel(context.Background())
	t.Cleanup(s.kill)
	go func() { s.ended <- Serve(graceful, forced, s.l, s.handler) }()
	return s
}

func (s *served) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// hangUp waits until the server closes a connection, and returns how long that took.
func hangUp(conn net.Conn) time.Duration {
	began := time.Now()
	io.Copy(io.Discard, conn)
	conn.Close()
	return time.Since(began)
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t)
		silent, dripping := s.l.Dial(), s.l.Dial()
		stopped := make(chan struct{})
		go func() { // one byte a second, for ever
			defer close(stopped)
			for range time.Tick(time.Second) {
				if _, err := io.WriteString(dripping, "G"); err != nil {
					return
				}
			}
		}()
		if took := hangUp(silent); took > headerTimeout+time.Second {
			t.Errorf("a silent connection was kept for %v", took)
		}
		if took := hangUp(dripping); took > headerTimeout+time.Second {
			t.Errorf("a dripping connection was kept for %v", took)
		}
		<-stopped
		s.end(t)
	})
}

func TestABodyThatNeverComesIsCutOff(t *testing.T) {
	for name, headers := range map[string][]string{"no token": nil, "other path": asAnn} {
		synctest.Test(t, func(t *testing.T) {
			s := serveInBubble(t)
			conn := s.l.Dial()
			path := "/mcp"
			if name == "other path" {
				path = "/nothing"
			}
			request := rawRequest("POST", path, "x", headers...)
			go io.WriteString(conn, strings.TrimSuffix(request, "x")) // the body stays away
			if took := hangUp(conn); took > bodyTimeout+time.Second {
				t.Errorf("%s: kept for %v", name, took)
			}
			s.end(t)
		})
	}
}

func TestLargeHeadersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t)
		conn := s.l.Dial()
		go io.WriteString(conn, rawRequest("GET", "/health", "", "X", strings.Repeat("x", 2*maxHeaders)))
		if status, _ := readResponse(t, conn); status != 431 {
			t.Errorf("status %d", status)
		}
		conn.Close()
		s.end(t)
	})
}

// begin sends a call of "block" and waits until it runs.
func (s *served) begin() (net.Conn, context.Context) {
	conn := s.l.Dial()
	go io.WriteString(conn, rawRequest("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block","arguments":{}}}`,
		"Authorization", "Bearer token-of-ann", "Content-Type", "application/json", "Accept", "application/json"))
	return conn, <-s.running
}

func TestStopLadder(t *testing.T) {
	t.Run("nothing runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveInBubble(t)
			idle := s.l.Dial()
			go io.WriteString(idle, rawRequest("GET", "/health", ""))
			readResponse(t, idle)
			began := time.Now()
			s.end(t)
			if took := time.Since(began); took > time.Second {
				t.Errorf("took %v", took)
			}
			idle.Close()
		})
	})
	t.Run("a call is cancelled after its grace and still answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveInBubble(t)
			conn, call := s.begin()
			s.stop()
			time.Sleep(grace - time.Second)
			if call.Err() != nil {
				t.Error("cancelled before its grace was over")
			}
			if status, body := readResponse(t, conn); status != 200 || !strings.Contains(body, "ended: the server is stopping") {
				t.Errorf("%d %s", status, body)
			}
			conn.Close()
			if err := <-s.ended; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
	})
	t.Run("forced, it does not wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveInBubble(t)
			conn, call := s.begin()
			began := time.Now()
			s.stop()
			time.Sleep(time.Second)
			s.kill()
			if err := <-s.ended; err != nil {
				t.Errorf("Serve: %v", err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if <-call.Done(); context.Cause(call) == nil {
				t.Error("its call was not cancelled")
			}
			conn.Close()
		})
	})
}

func TestServeReportsWhatFailed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := Serve(t.Context(), t.Context(), l, newSite(t).handler); err == nil {
		t.Error("a closed listener was served")
	}
}
