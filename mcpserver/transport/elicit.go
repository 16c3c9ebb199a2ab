package transport

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Elicits reports whether the user behind the call that ctx belongs to can be asked by a form. A tool that asks returns a
// result of [server.NewInputRequestBuilder]: in 2026-07-28 it goes to the client, which calls again with the answers;
// for the handshake revisions mcp-go asks by elicitation/create and calls the tool again itself.
func Elicits(ctx context.Context) bool {
	s, ok := server.ClientSessionFromContext(ctx).(*session)
	if !ok || !s.elicits(mcp.ElicitationModeForm) {
		return false
	}
	return s.out.line != nil || mcp.IsModernProtocol(server.RequestProtocolVersion(ctx))
}

// Elicit asks the user behind the call that ctx belongs to by a form, and waits for the answer as [Request] does: what a
// tool does that cannot be called again from its start, for a client of a handshake revision. See [Elicits].
func Elicit(ctx context.Context, form mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
	s, ok := server.ClientSessionFromContext(ctx).(*session)
	if !ok {
		return nil, ErrCannotAsk
	}
	return s.RequestElicitation(ctx, mcp.ElicitationRequest{Params: form})
}

// elicits reports whether the client declared that it can ask its user in a mode.
func (c *client) elicits(mode string) bool {
	can := abilitiesOf(c.GetClientCapabilities())
	if mode == mcp.ElicitationModeURL {
		return can&asksByURL != 0
	}
	return can&asksByForm != 0
}

// RequestElicitation asks the user behind this session's request; mcp-go calls it, too.
func (s *session) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	if !s.elicits(r.Params.Mode) {
		return nil, server.ErrElicitationNotSupported
	}
	raw, err := s.out.ask(ctx, string(mcp.MethodElicitationCreate), r.Params)
	if err != nil {
		return nil, err
	}
	var result mcp.ElicitationResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("the client's answer to elicitation/create cannot be read: %w", err)
	}
	switch result.Action {
	case mcp.ElicitationResponseActionAccept, mcp.ElicitationResponseActionDecline, mcp.ElicitationResponseActionCancel:
		return &result, nil
	}
	return nil, fmt.Errorf("the client's answer to elicitation/create has the unknown action %q", clip(string(result.Action), 32))
}

var _ server.SessionWithElicitation = (*session)(nil)
