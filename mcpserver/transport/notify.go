package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// Why a call's context ended, as [context.Cause] tells a handler.
var (
	// ErrCancelled says that the client cancelled the request by notifications/cancelled.
	ErrCancelled = errors.New("the client cancelled the request")
	// ErrDisconnected says that the client of a 2026-07-28 request closed its connection, which there is how to cancel.
	ErrDisconnected = errors.New("the client closed the connection of its request")
	// ErrShutdown says that the server is stopping.
	ErrShutdown = errors.New("the server is stopping")
)

// ErrNoStream is returned by [Notify] where a notification cannot reach the client: it takes no event stream, its
// connection is gone, or the request has been answered.
var ErrNoStream = errors.New("the client cannot take notifications for this request")

// Notify sends a notification to the client on the response stream of the request that ctx belongs to, and returns when
// it has been written: what was sent before a handler returns arrives before its result. It may be called from several
// goroutines. The error is ErrNoStream, perhaps wrapped, or one about params; neither need stop the handler.
func Notify(ctx context.Context, method string, params map[string]any) error {
	out, ok := ctx.Value(outletKey{}).(*outlet)
	if !ok {
		return ErrNoStream
	}
	// mcp-go drops a _meta that stands among the other fields.
	rest := maps.Clone(params)
	meta, _ := rest["_meta"].(map[string]any)
	delete(rest, "_meta")
	return out.send(mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{
			Method: method,
			Params: mcp.NotificationParams{Meta: meta, AdditionalFields: rest},
		},
	})
}

// sink is where one request's messages go: its HTTP response, or stdout.
type sink interface {
	// send writes one whole message before it returns. Its error wraps ErrNoStream.
	send(payload []byte) error
}

type outletKey struct{}

// outlet is one request's way to its client. It closes with the request, so that a goroutine that a handler left
// behind cannot write about a request that has been answered.
type outlet struct {
	line *line // nil where the client cannot answer

	mu      sync.Mutex
	to      sink
	closed  bool
	failure error // see Fail
}

// send writes one notification.
func (o *outlet) send(n mcp.JSONRPCNotification) error { return o.write(n.Method, n) }

// write writes one message of a method.
func (o *outlet) write(method string, message any) error {
	payload, err := encode(message)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ErrNoStream
	}
	return o.to.send(payload)
}

// close makes every later send fail. It waits for one that is under way.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}
