package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/internal/pipes"
)

// rawPost writes a POST whose body is announced as longer than what is sent by missing bytes.
func rawPost(u *user, body string, missing int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", len(body)+missing)
	u.request(context.Background(), body).Header.Write(&b)
	return b.String() + "\r\n" + body
}

func TestAClientThatStopsReadingIsGivenUp(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		synctest.Test(t, func(t *testing.T) {
			s := server.NewMCPServer("probe", "1")
			took := make(chan time.Duration, 1)
			s.AddTool(mcp.NewTool("talk"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				began := time.Now()
				for Notify(ctx, "notifications/progress", map[string]any{"message": strings.Repeat("x", 1<<16)}) == nil {
				}
				if err := Notify(ctx, "x", nil); !errors.Is(err, ErrNoStream) {
					t.Errorf("%s: %v", version, err)
				}
				took <- time.Since(began)
				return mcp.NewToolResultText("nobody reads this"), nil
			})
			d := NewDispatcher(s, nil)
			listener := pipes.NewListener()
			srv := &http.Server{Handler: NewHTTP(d, HTTPConfig{})}
			go srv.Serve(listener)
			conn := listener.Dial()
			u := &user{w: &world{t: t}, version: version}
			if _, err := io.WriteString(conn, rawPost(u, u.toolCall(1, "talk", nil), 0)); err != nil {
				t.Error(err)
			}
			if got := <-took; got != writeTimeout {
				t.Errorf("%s: the handler waited %v for a client that does not read", version, got)
			}
			conn.Close()
			srv.Shutdown(t.Context())
		})
	}
}

func TestAClientThatStopsSendingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDispatcher(newServer(nil), nil)
		listener := pipes.NewListener()
		srv := &http.Server{Handler: NewHTTP(d, HTTPConfig{})}
		go srv.Serve(listener)
		conn := listener.Dial()
		u := &user{w: &world{t: t}, version: stateless}
		began := time.Now()
		if _, err := io.WriteString(conn, rawPost(u, u.toolCall(1, "echo", nil), 1)); err != nil {
			t.Error(err)
		}
		answer, _ := io.ReadAll(conn)
		if got := time.Since(began); got < bodyTimeout || got > bodyTimeout+time.Second || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
			t.Errorf("after %v: %q", got, answer)
		}
		conn.Close()
		srv.Shutdown(t.Context())
	})
}

func TestACallMayLastLongerThanItsBodyMay(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		synctest.Test(t, func(t *testing.T) {
			calls := make(chan *blocked, 1)
			d := NewDispatcher(newServer(calls), nil)
			listener := pipes.NewListener()
			srv := &http.Server{Handler: NewHTTP(d, HTTPConfig{})}
			go srv.Serve(listener)
			conn := listener.Dial()
			u := &user{w: &world{t: t}, version: version}
			io.WriteString(conn, rawPost(u, u.toolCall(1, "block", nil), 0))
			call := <-calls
			read := make(chan string, 1)
			go func() {
				b, _ := io.ReadAll(conn)
				read <- string(b)
			}()
			time.Sleep(time.Hour)
			call.untouched(t)
			close(call.release)
			<-call.ended
			srv.Shutdown(t.Context())
			if got := <-read; !strings.Contains(got, "unblocked") {
				t.Errorf("%s: %q", version, got)
			}
		})
	}
}

func TestParamHeadersAreChecked(t *testing.T) {
	w := newWorld(t)
	tool := mcp.NewToolWithRawSchema("region", "has a header", []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`))
	w.mcp.AddTool(tool, func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("region", "")), nil
	})
	u := w.user("ann", stateless)
	call := u.toolCall(1, "region", map[string]any{"region": "eu"})
	for header, status := range map[string]int{"eu": 200, "=?base64?ZXU=?=": 200, "us": 400, "": 400} {
		got := u.post(call, func(r *http.Request) {
			if header != "" {
				r.Header.Set("Mcp-Param-Region", header)
			}
		})
		if got.status != status || status == 400 && got.last().Error.Code != -32020 {
			t.Errorf("%q: %d %s", header, got.status, got.body)
		}
	}
}
