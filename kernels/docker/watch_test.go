package docker

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"
)

// pipeCarrier connects to a test.
type pipeCarrier struct {
	carrier
	shim chan net.Conn
	ends bool
}

func (c pipeCarrier) endsWithShim() bool { return c.ends }

func (c pipeCarrier) dial(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	c.shim <- theirs
	return ours, nil
}

// waits is an engine of which somebody waits for a container: each wait is told of as it begins and as it ends.
type waits struct {
	*httptest.Server
	changed chan int // 1 or -1
	exit    chan struct{}
}

func newWaits(t *testing.T) *waits {
	w := &waits{changed: make(chan int, 10), exit: make(chan struct{})}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/wait") {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(rw).Flush()
		w.changed <- 1
		select {
		case <-w.exit:
			_, _ = rw.Write([]byte(`{"StatusCode":137}`))
		case <-r.Context().Done():
		}
		w.changed <- -1
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *waits) expect(t *testing.T, change int, when string) {
	t.Helper()
	select {
	case got := <-w.changed:
		if got != change {
			t.Fatalf("%s: a wait began or ended (%d)", when, got)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: no wait began or ended", when)
	}
}

func (w *waits) handle(t *testing.T, ends bool) (*handle, pipeCarrier) {
	api, err := client.NewClientWithOpts(client.WithHost("tcp://"+w.Listener.Addr().String()), client.WithVersion("1.41"))
	if err != nil {
		t.Fatal(err)
	}
	c := pipeCarrier{shim: make(chan net.Conn, 1), ends: ends}
	h := (&Provisioner{}).newHandle(&engine{api: api}, "k", "c", c)
	t.Cleanup(func() { _ = h.Close(); _ = api.Close() })
	w.expect(t, 1, "at first")
	return h, c
}

// The engine is asked for the end of a container only while no connection tells of that.
func TestEngineIsNotAskedAboutConnectedKernels(t *testing.T) {
	w := newWaits(t)
	h, c := w.handle(t, true)
	conn, err := h.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.expect(t, -1, "connected")
	_ = (<-c.shim).Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection lives")
	}
	w.expect(t, 1, "no longer connected")
	close(w.exit)
	<-h.Exited()
	if s := h.Status(); s.Signal != "SIGKILL" {
		t.Errorf("status %+v", s)
	}
}

// A connection that the engine has the other end of tells nothing.
func TestEngineIsAskedWhereConnectionsTellNothing(t *testing.T) {
	w := newWaits(t)
	h, _ := w.handle(t, false)
	conn, err := h.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	close(w.exit)
	select {
	case <-h.Exited():
	case <-time.After(10 * time.Second):
		t.Error("the end was not noticed")
	}
}
