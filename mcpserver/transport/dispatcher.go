package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Dispatcher hands the messages of every transport to one MCP server and keeps count of what runs.
type Dispatcher struct {
	server   *server.MCPServer
	log      *slog.Logger
	requests atomic.Uint64

	// running ends with Cancel, listening with Drain.
	running, listening             context.Context
	cancelRunning, cancelListening context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	active int
	idle   chan struct{} // closed when the last call of a closed dispatcher has returned
}

// NewDispatcher returns a dispatcher for s. A nil logger is slog.Default.
func NewDispatcher(s *server.MCPServer, logger *slog.Logger) *Dispatcher {
	if logger == nil {
		logger = slog.Default()
	}
	d := &Dispatcher{server: s, log: logger, idle: make(chan struct{})}
	d.running, d.cancelRunning = context.WithCancelCause(context.Background())
	d.listening, d.cancelListening = context.WithCancelCause(d.running)
	return d
}

// Drain ends the streams that would never end by themselves (subscriptions/listen), the first step of a graceful stop.
// Calls go on.
func (d *Dispatcher) Drain() { d.cancelListening(ErrShutdown) }

// Cancel cancels every running call with ErrShutdown. It does not wait; see Close.
func (d *Dispatcher) Cancel() { d.cancelRunning(ErrShutdown) }

// Close refuses new calls, cancels the running ones and waits until their handlers have returned or ctx ends.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		if d.active == 0 {
			close(d.idle)
		}
	}
	d.mu.Unlock()
	d.Cancel()
	select {
	case <-d.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("calls still run: %w", ctx.Err())
	}
}

// begin counts a call in and ties its context to the dispatcher's life. end must be called.
func (d *Dispatcher) begin(ctx context.Context, m *message) (call context.Context, cancel context.CancelCauseFunc, end func(), refused *rpcError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, nil, (&rpcError{code: codeBusy, message: "the server is stopping; try again soon"}).withStatus(http.StatusServiceUnavailable)
	}
	d.active++
	life := d.running
	if m.method == string(mcp.MethodSubscriptionsListen) {
		life = d.listening
	}
	call, cancel = context.WithCancelCause(ctx)
	untie := context.AfterFunc(life, func() { cancel(ErrShutdown) })
	return call, cancel, func() { untie(); cancel(nil); d.end() }, nil
}

// end counts a call out.
func (d *Dispatcher) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active--; d.active == 0 && d.closed {
		close(d.idle)
	}
}

// call handles one request and returns its response, never nil. Everything that its handler sent has been written to
// the outlet's sink by then, and nothing more will be. ctx comes from begin.
func (d *Dispatcher) call(ctx context.Context, m *message, c *client, out *outlet) mcp.JSONRPCMessage {
	s := newSession("r"+strconv.FormatUint(d.requests.Add(1), 10), c, out)
	if m.method == string(mcp.MethodSubscriptionsListen) {
		s.listen = string(m.id)
		if d.server.RegisterSession(ctx, s) == nil {
			defer d.server.UnregisterSession(context.WithoutCancel(ctx), s.id)
		}
	}
	response := d.handle(context.WithValue(ctx, outletKey{}, out), m, s)
	s.close()
	out.close()
	if e := out.failed(m); e != nil {
		response = e.response(m.id)
	}
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		response = (&rpcError{code: mcp.REQUEST_INTERRUPTED, message: ErrCancelled.Error()}).response(m.id)
	}
	return withID(withURI(response, m), m.id)
}

// handle lets mcp-go handle a message, and turns a panic into an error.
func (d *Dispatcher) handle(ctx context.Context, m *message, s *session) (response mcp.JSONRPCMessage) {
	defer func() {
		if reason := recover(); reason != nil {
			d.log.Error("panic in an MCP handler", "method", clip(m.method, 64), "tool", clip(m.tool(), 64),
				"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			response = (&rpcError{code: mcp.INTERNAL_ERROR, message: "the server failed while it handled this request; its log says more"}).response(m.id)
		}
	}()
	ctx = d.server.WithContext(ctx, s)
	response = d.server.HandleMessage(ctx, m.raw)
	if response == nil && !m.isNotification() {
		response = (&rpcError{code: mcp.INTERNAL_ERROR, message: "the server has no answer to this request"}).response(m.id)
	}
	return response
}

// notified handles a notification from a client, other than a cancel.
func (d *Dispatcher) notified(ctx context.Context, m *message, c *client) {
	out := &outlet{closed: true}
	s := newSession("n"+strconv.FormatUint(d.requests.Add(1), 10), c, out)
	defer s.close()
	d.handle(ctx, m, s)
}

// encodeResponse writes a response; one that cannot be written becomes an error that says so.
func (d *Dispatcher) encodeResponse(response mcp.JSONRPCMessage, id json.RawMessage) []byte {
	payload, err := encode(response)
	if err == nil {
		return payload
	}
	d.log.Error("an MCP response cannot be encoded", "error", err)
	payload, _ = encode((&rpcError{code: mcp.INTERNAL_ERROR, message: "the response cannot be encoded as JSON"}).response(id))
	return payload
}
