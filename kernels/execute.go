package kernels

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"unicode/utf8"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// ExecuteRequest is code to run (Jupyter messaging, "Execute").
type ExecuteRequest struct {
	// Code must be valid UTF-8.
	Code string `json:"code"`
	// Silent asks for no output of the result and no execution count.
	Silent bool `json:"silent"`
	// StoreHistory puts the code into the kernel's own history; false where Silent is true.
	StoreHistory bool `json:"store_history"`
	// AllowStdin lets the code ask for input: OutputInput, answered by Execution.Reply. False makes it fail at once.
	AllowStdin bool `json:"allow_stdin"`
	// StopOnError aborts the requests that are queued behind this one if it fails.
	StopOnError bool `json:"stop_on_error"`
	// UserExpressions are evaluated after the code; see Result.UserExpressions.
	UserExpressions map[string]string `json:"user_expressions"`
	// MsgID is the request's id, for callers that store it before they send. Empty: one is made.
	MsgID string `json:"-"`
}

type executeContent struct {
	ExecuteRequest
}

// MarshalJSON writes an absent map as {}, which kernels expect.
func (c executeContent) MarshalJSON() ([]byte, error) {
	r := c.ExecuteRequest
	if r.UserExpressions == nil {
		r.UserExpressions = noExpressions
	}
	return json.Marshal(r)
}

var noExpressions = map[string]string{}

// Execute sends code to the kernel. It returns when the request is on its way; ctx bounds only that. A kernel that is not
// up yet gets it when it is. The error is Invalid for code that is not text, Conflict for a MsgID in use, that of ctx, or
// the client's own end.
func (c *Client) Execute(ctx context.Context, r ExecuteRequest) (*Execution, error) {
	if !utf8.ValidString(r.Code) {
		return nil, fault.New(fault.Invalid, "the code is not valid UTF-8")
	}
	if r.MsgID == "" {
		r.MsgID = newMsgID()
	}
	if err := c.gate(ctx); err != nil {
		return nil, err
	}
	k := newCall(r.MsgID)
	k.patient = true
	e := newExecution(c, k)
	e.allowStdin = r.AllowStdin
	c.mu.Lock()
	taken := c.calls.open[k.id] != nil || c.calls.execs[k.id] != nil
	if !taken {
		c.register(k)
	}
	c.mu.Unlock()
	if taken {
		return nil, fault.New(fault.Conflict, "an execution with the id %q exists already", clip(k.id))
	}
	c.ackMuch()
	if err := c.sendCall(ctx, k, "execute_request", executeContent{r}); err != nil {
		e.Forget()
		return nil, err
	}
	return e, nil
}

// Execution returns an execution that runs, was adopted, or was not read to its end.
func (c *Client) Execution(msgID string) (*Execution, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.calls.execs[msgID]
	return e, ok
}

// adopt opens an execution that an earlier client sent. Only Connect calls it, before anything runs.
func (c *Client) adopt(id string) {
	k := newCall(id)
	k.adopted, k.patient = true, true
	newExecution(c, k)
	c.register(k)
}

// register opens a call. c.mu is held, or nothing runs yet.
func (c *Client) register(k *call) {
	k.incarnation = c.kernel.incarnation
	c.calls.open[k.id] = k
	if k.exec != nil {
		c.calls.execs[k.id] = k.exec
	}
}

// sendCall writes a registered call's request to shell and gives it its place. A call that cannot be written is closed again.
func (c *Client) sendCall(ctx context.Context, k *call, msgType string, content any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return c.abandon(k, err)
	}
	m := wire.Message{Header: wire.NewHeader(k.id, c.session, msgType), Content: body}
	l, err := c.send(ctx, stream.Shell, m)
	if err != nil {
		return c.abandon(k, err)
	}
	c.place(k, l)
	return nil
}

// send writes one message for the kernel and returns the connection that took it. A shim cuts off who sends it more than
// it takes, so that is not tried.
func (c *Client) send(ctx context.Context, ch stream.Channel, m wire.Message) (*link, error) {
	parts := m.Parts()
	var size int64
	for _, p := range parts {
		size += int64(len(p))
	}
	if size > stream.MaxSend {
		return nil, fault.New(fault.Invalid, "a message of %d bytes is too large for the kernel, at most %d", size, stream.MaxSend)
	}
	return c.write(ctx, func(w *stream.Writer) error {
		return w.WriteMessage(stream.FrameSend, stream.Message{Channel: ch, Parts: parts})
	})
}

// place gives a call that was written to l its place in the order. When a newer connection was made before that, its
// fence could not know of the call, and another one is sent.
func (c *Client) place(k *call, l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.written++
	k.order = c.calls.written
	if k.exec != nil {
		c.calls.latest = k.id
	}
	if k.patient && c.conn.link != nil && c.conn.link != l {
		c.wantFence()
	}
}

// abandon closes a call that nobody waits for any more, and returns err.
func (c *Client) abandon(k *call, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.closed = true
	c.settle(k)
	return err
}

// newMsgID returns an id that no code in a kernel can guess: whoever knows one could speak for its execution.
func newMsgID() string { return rand.Text() }
