package kernels

import (
	"context"
	"encoding/json"

	"cellblock/internal/fault"
	"cellblock/internal/jsontext"
)

// Completion is the kernel's answer to Complete (Jupyter messaging, "Completion").
type Completion struct {
	Matches []string `json:"matches"`
	// CursorStart and CursorEnd bound the text that a match replaces, in Unicode code points.
	CursorStart int             `json:"cursor_start"`
	CursorEnd   int             `json:"cursor_end"`
	Metadata    json.RawMessage `json:"metadata"`
}

// Inspection is the kernel's answer to Inspect (Jupyter messaging, "Introspection").
type Inspection struct {
	Found bool `json:"found"`
	// Data is a MIME bundle.
	Data map[string]json.RawMessage `json:"data"`
}

// Complete asks for completions of code at a cursor position, in Unicode code points. A kernel that runs a cell answers
// when that has ended.
func (c *Client) Complete(ctx context.Context, code string, cursor int) (Completion, error) {
	var out Completion
	err := c.ask(ctx, "complete_request", map[string]any{"code": code, "cursor_pos": cursor}, &out)
	return out, err
}

// Inspect asks what the name at a cursor position is. Detail is 0 or 1. A kernel that runs a cell answers when that has
// ended.
func (c *Client) Inspect(ctx context.Context, code string, cursor, detail int) (Inspection, error) {
	var out Inspection
	err := c.ask(ctx, "inspect_request", map[string]any{"code": code, "cursor_pos": cursor, "detail_level": detail}, &out)
	return out, err
}

// ask sends a request other than execute, and decodes its reply into v.
func (c *Client) ask(ctx context.Context, msgType string, content, v any) error {
	if err := c.gate(ctx); err != nil {
		return err
	}
	k := newCall(newMsgID())
	k.patient = true
	c.mu.Lock()
	c.register(k)
	c.mu.Unlock()
	if err := c.sendCall(ctx, k, msgType, content); err != nil {
		return err
	}
	reply, err := c.awaitReply(ctx, k)
	if err != nil {
		return c.abandon(k, err)
	}
	return decodeReply(msgType, reply, v)
}

// awaitReply waits for a call's reply, or for the certainty that none comes.
func (c *Client) awaitReply(ctx context.Context, k *call) (json.RawMessage, error) {
	select {
	case <-k.answered:
	case <-k.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case k.replied:
		return k.reply, nil
	case k.death != nil:
		return nil, &DeathError{*k.death}
	case c.err != nil:
		return nil, c.err
	}
	return nil, fault.New(fault.Unavailable, "the kernel's reply was lost").WithHint("Try again.")
}

// maxReply bounds the reply to a request other than execute, in bytes.
const maxReply = 4 << 20

// decodeReply decodes a reply whose status is not error.
func decodeReply(msgType string, reply json.RawMessage, v any) error {
	if len(reply) > maxReply {
		return fault.New(fault.Unavailable, "the kernel's reply to %s is too long: %d bytes", msgType, len(reply))
	}
	var failed replyContent
	if err := jsontext.Members(reply, failed.member); err != nil {
		return fault.New(fault.Unavailable, "the kernel's reply to %s could not be read: %w", msgType, err)
	}
	if failed.Status == "error" {
		return fault.New(fault.Unavailable, "the kernel failed on %s: %s: %s", msgType, clip(failed.EName), clip(failed.EValue))
	}
	if err := json.Unmarshal(reply, v); err != nil {
		return fault.New(fault.Unavailable, "the kernel's reply to %s could not be read: %w", msgType, err)
	}
	return nil
}
