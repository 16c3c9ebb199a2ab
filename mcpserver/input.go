package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/internal/fault"
	"cellblock/mcpserver/terminal"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// asker puts a cell's prompt to the user. Without an error the cell has its answer, or a refusal, or has ended, and the
// call goes on to follow it.
type asker func(ctx context.Context, e *sessions.Execution, p *sessions.Prompt) error

const (
	// promptID names the one question of a result that asks, answerField the one field of its form.
	promptID    = "input"
	answerField = "value"
	// maxPrompt bounds what the user gets to read of a prompt, in characters.
	maxPrompt = 2000
	// stateLife is how long the state of a result that asks can be brought back: much longer than a prompt is open, so that
	// an answer that comes too late leads to its cell's result, and not to another run.
	stateLife = 24 * time.Hour
)

// errAsks is why a call returns while its cell waits for input: its result asks for it.
var errAsks = errors.New("the call's result asks for input")

// askerFor returns how the user behind a call is asked, nil if he cannot be: in 2026-07-28 by the call's result, before by a
// request in the middle of the call. A call that does not wait has nobody.
func askerFor(ctx context.Context, wait time.Duration) asker {
	switch {
	case wait <= 0 || !transport.Elicits(ctx):
		return nil
	case mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)):
		return func(context.Context, *sessions.Execution, *sessions.Prompt) error { return errAsks }
	}
	return askNow
}

// askNow asks the user during the call, for as long as the prompt is open.
func askNow(ctx context.Context, e *sessions.Execution, p *sessions.Prompt) error {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.Closed():
			cancel()
		case <-asking.Done():
		}
	}()
	answer, err := transport.Elicit(asking, formOf(e, p))
	switch {
	case err == nil:
		settle(e, p.ID, *answer)
	case ctx.Err() == nil:
		e.Refuse(p.ID, "the user could not be asked, "+terminal.Plain(err.Error()))
	}
	return nil // what ended the call, if it did, is for who follows the cell
}

// settle gives a cell what its user said to a prompt.
func settle(e *sessions.Execution, prompt string, answer mcp.ElicitationResult) {
	switch answer.Action {
	case mcp.ElicitationResponseActionAccept:
		e.Answer(prompt, answerLine(answer.Content))
	case mcp.ElicitationResponseActionDecline:
		e.Refuse(prompt, "the user declined to answer")
	default:
		e.Refuse(prompt, "the user dismissed the question")
	}
}

// answerLine is what the user filled in. An empty field, which clients leave out, is an empty line.
func answerLine(content any) string {
	fields, _ := content.(map[string]any)
	if value := fields[answerField]; value != nil {
		return strings.TrimRight(fmt.Sprint(value), "\r\n")
	}
	return ""
}

// formOf is the form that asks a prompt. It says first that the words are the code's: who trusts this server need not
// trust the code that runs in it.
func formOf(e *sessions.Execution, p *sessions.Prompt) mcp.ElicitationParams {
	text := cutMiddle(strings.TrimSpace(terminal.Plain(p.Text)), maxPrompt)
	if text == "" {
		text = "(it does not say what for)"
	}
	return mcp.ElicitationParams{
		Message: fmt.Sprintf("Code in session %s asks for input: %s", e.SessionID(), text),
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{
			answerField: map[string]any{"type": "string", "title": "Answer", "description": "The line that the code's input() returns"},
		}},
	}
}

// waiting is the state of a call whose result asks: which cell waits, and for the answer to what.
type waiting struct {
	Session string `json:"session"`
	Number  int    `json:"number"`
	Prompt  string `json:"prompt"`
}

// asks is the result that asks for a cell's input, in 2026-07-28. The client calls again with the answer.
func (s *service) asks(owner sessions.Owner, e *sessions.Execution, p *sessions.Prompt) *mcp.CallToolResult {
	state, err := json.Marshal(waiting{e.SessionID(), e.Number(), p.ID})
	if err != nil {
		return toolError(err)
	}
	sealed := s.StateKey.Seal(stateOwner(owner), state, time.Now().Add(stateLife))
	return server.NewInputRequestBuilder(sealed).Elicit(promptID, formOf(e, p)).ToolResult()
}

// stateOwner writes an owner so that no other is written the same.
func stateOwner(o sessions.Owner) string { return fmt.Sprintf("%q %q", o.Issuer, o.Subject) }

// answers tells whether a call is the second one after a result that asked. It never runs code.
func answers(r mcp.CallToolRequest) bool {
	return r.Params.RequestState != "" || len(r.Params.InputResponses) > 0
}

// resume returns the cell that a call brings an answer for, after it was given that. An answer to a prompt that is not open
// any more leads to the cell all the same: it may have been heard when the call was lost, or have come too late.
func (s *service) resume(ctx context.Context, owner sessions.Owner, r mcp.CallToolRequest, language string) (*sessions.Execution, error) {
	raw, err := s.StateKey.Open(stateOwner(owner), r.Params.RequestState, time.Now())
	var w waiting
	if err != nil || json.Unmarshal(raw, &w) != nil {
		return nil, fault.New(fault.Invalid, "requestState: it is not one that this server gave to you, or it is too old").
			WithHint("the code was not run again; list_executions shows what became of it")
	}
	e, err := s.Sessions.Execution(ctx, owner, w.Session, w.Number)
	if err != nil {
		return nil, err
	}
	if e.Language() != language || !e.Asked(w.Prompt) {
		return nil, fault.New(fault.Conflict, "the cell that asked for this input does not run any more, and was not run again").
			WithHint("list_executions shows what became of it")
	}
	if answer := server.ElicitationResponse(r.Params.InputResponses, promptID); answer != nil {
		settle(e, w.Prompt, *answer)
	}
	return e, nil
}
