package transport

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// ErrCannotAsk is returned by [Request] where the client has no way to answer: in 2026-07-28, where a tool's result asks
// instead (resultType "input_required"), and for a client of a handshake revision that keeps no Mcp-Session-Id.
var ErrCannotAsk = errors.New("the client cannot be asked during this request")

// AskTimeout is the longest that [Request] waits for an answer, so that no call hangs on a user who has gone home.
const AskTimeout = 10 * time.Minute

// ClientError is the client's own error in answer to [Request].
type ClientError struct {
	Code    int
	Message string
}

// Error says which code the client answered, and its words.
func (e *ClientError) Error() string {
	return fmt.Sprintf("the client answered with error %d: %s", e.Code, clip(e.Message, 200))
}

// Request asks the client of the request that ctx belongs to and returns the result that it answers with. The question
// goes onto that request's own response stream; the answer comes by a POST of its own, or over stdin, and is taken from
// the same owner and session only, once.
//
// It waits until the answer is there, ctx ends, the request's connection is lost, or AskTimeout is over; a question that
// is given up is withdrawn by notifications/cancelled. The error is ErrCannotAsk or ErrNoStream where the question did not
// get through, a *ClientError where the client refused, else the context's cause.
//
// Whether the client can do what it is asked (elicitation, sampling) is the caller's to check; see [Elicits].
func Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	out, ok := ctx.Value(outletKey{}).(*outlet)
	if !ok {
		return nil, ErrCannotAsk
	}
	return out.ask(ctx, method, params)
}

// line is how the client of one request answers what it is asked during it.
type line struct {
	questions *questions
	owner     string
	session   string          // "" over stdio
	gone      <-chan struct{} // closed when the request's connection is lost; nil where that ends everything anyway
}

// ask sends a question and waits for its answer.
func (o *outlet) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if o.line == nil {
		return nil, ErrCannotAsk
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	id := rand.Text() // nobody else can know it, and an answer to an earlier process's question never fits
	answer, forget := o.line.questions.open(callKey{o.line.owner, o.line.session, `"` + id})
	defer forget()
	if err := o.write(method, question{mcp.JSONRPC_VERSION, id, method, params}); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return m.outcome()
	case <-o.line.gone:
		return nil, fmt.Errorf("%w: the connection was lost before %s was answered", ErrNoStream, method)
	case <-ctx.Done():
		o.withdraw(id)
		return nil, fmt.Errorf("%s was not answered: %w", method, context.Cause(ctx))
	}
}

// withdraw tells the client that a question needs no answer any more.
func (o *outlet) withdraw(id string) {
	_ = o.send(mcp.JSONRPCNotification{ // whoever cannot hear it does not show the question either
		JSONRPC: mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{
			Method: string(mcp.MethodNotificationCancelled),
			Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": id, "reason": "no longer needed"}},
		},
	})
}

// question is a JSON-RPC request of this server's own.
type question struct {
	JSONRPC string `json:"jsonrpc"`
	ID      string `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// outcome returns what a response holds.
func (m *message) outcome() (json.RawMessage, error) {
	if m.failure == nil {
		return m.result, nil
	}
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(m.failure, &e) // an error that is none of JSON-RPC's is one all the same
	return nil, &ClientError{Code: e.Code, Message: e.Message}
}

// questions is what clients have been asked and have not answered.
type questions struct {
	mu      sync.Mutex
	waiting map[callKey]chan<- *message
}

// open enters a question. forget must be called.
func (q *questions) open(key callKey) (answer <-chan *message, forget func()) {
	c := make(chan *message, 1) // the one answer never waits for whoever asked
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[callKey]chan<- *message{}
	}
	q.waiting[key] = c
	return c, func() { q.take(key) }
}

// answer gives a response to whoever waits for it. A response that nobody waits for is dropped.
func (q *questions) answer(key callKey, m *message) {
	if c := q.take(key); c != nil {
		c <- m
	}
}

// take removes a question.
func (q *questions) take(key callKey) chan<- *message {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.waiting[key]
	delete(q.waiting, key)
	return c
}
