package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/mcpserver/transport"
)

// object is the schema of a form with fields.
func object(fields map[string]any, required ...string) map[string]any {
	return map[string]any{"type": "object", "properties": fields, "required": append([]string{}, required...)}
}

func field(kind string, more ...any) map[string]any {
	f := map[string]any{"type": kind}
	for i := 0; i < len(more); i += 2 {
		f[more[i].(string)] = more[i+1]
	}
	return f
}

func titled(key string, values ...string) []any {
	var all []any
	for _, v := range values {
		all = append(all, map[string]any{key: v, "title": "Title of " + v})
	}
	return all
}

// askingTools ask the client in the middle of their call: the handshake revisions' way, on the call's own stream.
var askingTools = []tool{
	{name: "test_sampling", input: []mcp.ToolOption{mcp.WithString("prompt", mcp.Required())},
		handle: func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			raw, err := transport.Request(ctx, "sampling/createMessage", map[string]any{"maxTokens": 100, "messages": []any{
				map[string]any{"role": "user", "content": mcp.NewTextContent(r.GetString("prompt", ""))}}})
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			var answer struct{ Content mcp.TextContent }
			return text("LLM response: %s", answer.Content.Text), json.Unmarshal(raw, &answer)
		}},
	{name: "test_elicitation", input: []mcp.ToolOption{mcp.WithString("message", mcp.Required())},
		handle: asksForm("User response", func(r mcp.CallToolRequest) mcp.ElicitationParams {
			return mcp.ElicitationParams{Message: r.GetString("message", ""), RequestedSchema: object(map[string]any{
				"username": field("string", "description", "User's response"),
				"email":    field("string", "description", "User's email address"),
			}, "username", "email")}
		})},
	{name: "test_elicitation_sep1034_defaults", handle: asksForm("Elicitation completed", func(mcp.CallToolRequest) mcp.ElicitationParams {
		return mcp.ElicitationParams{Message: "Check these", RequestedSchema: object(map[string]any{
			"name": field("string", "default", "John Doe"), "age": field("integer", "default", 30), "score": field("number", "default", 95.5),
			"status":   field("string", "enum", []string{"active", "inactive", "pending"}, "default", "active"),
			"verified": field("boolean", "default", true),
		})}
	})},
	{name: "test_elicitation_sep1330_enums", handle: asksForm("Elicitation completed", func(mcp.CallToolRequest) mcp.ElicitationParams {
		plain, values := []string{"option1", "option2", "option3"}, []string{"value1", "value2", "value3"}
		return mcp.ElicitationParams{Message: "Choose", RequestedSchema: object(map[string]any{
			"untitledSingle": field("string", "enum", plain),
			"titledSingle":   field("string", "oneOf", titled("const", values...)),
			"legacyEnum":     field("string", "enum", []string{"opt1", "opt2"}, "enumNames", []string{"Option One", "Option Two"}),
			"untitledMulti":  field("array", "items", field("string", "enum", plain)),
			"titledMulti":    field("array", "items", map[string]any{"anyOf": titled("const", values...)}),
		})}
	})},
}

// asksForm is a handler that asks the user by one form and says what came back. It asks by its result, which mcp-go turns
// into elicitation/create for clients of the handshake revisions.
func asksForm(says string, form func(mcp.CallToolRequest) mcp.ElicitationParams) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer := server.ElicitationResponse(r.Params.InputResponses, "form"); answer != nil {
			return text("%s: action=%s, content=%v", says, answer.Action, answer.Content), nil
		}
		if !transport.Elicits(ctx) {
			return mcp.NewToolResultError("this client cannot ask its user"), nil
		}
		return server.NewInputRequestBuilder("").Elicit("form", form(r)).ToolResult(), nil
	}
}

// key seals the states of formTools; one owner is enough here.
var key = transport.SessionKey("a key of thirty-two bytes, fixed.")

func seal(state string) string { return key.Seal("alice", []byte(state), time.Now().Add(time.Minute)) }

// opened returns the state that a call brings back.
func opened(r mcp.CallToolRequest) (string, error) {
	state, err := key.Open("alice", r.Params.RequestState, time.Now())
	return string(state), err
}

func ask(message, name, kind string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Message: message, RequestedSchema: object(map[string]any{name: field(kind)}, name)}
}

func answered(r mcp.CallToolRequest, id string) bool {
	a := server.ElicitationResponse(r.Params.InputResponses, id)
	return a != nil && a.Action == mcp.ElicitationResponseActionAccept
}

var (
	greeting = mcp.CreateMessageParams{MaxTokens: 50, Messages: []mcp.SamplingMessage{
		{Role: mcp.RoleUser, Content: mcp.NewTextContent("Generate a greeting")}}}
	capital = mcp.CreateMessageParams{MaxTokens: 100, Messages: []mcp.SamplingMessage{
		{Role: mcp.RoleUser, Content: mcp.NewTextContent("What is the capital of France?")}}}
)

// formTools ask by their result: the way of 2026-07-28.
var formTools = []tool{
	{name: "test_input_required_result_elicitation", handle: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer := server.ElicitationResponse(r.Params.InputResponses, "user_name"); answer != nil && answer.Action == mcp.ElicitationResponseActionAccept {
			return text("Hello, %v!", answer.Content), nil
		}
		return server.NewInputRequestBuilder("").Elicit("user_name", ask("What is your name?", "name", "string")).ToolResult(), nil
	}},
	{name: "test_streaming_elicitation", handle: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return server.NewInputRequestBuilder("").Elicit("user_name", ask("What is your name?", "name", "string")).ToolResult(), nil
	}},
	{name: "test_input_required_result_sampling", handle: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer := server.SamplingResponse(r.Params.InputResponses, "capital_question"); answer != nil {
			return text("%v", answer.Content), nil
		}
		return server.NewInputRequestBuilder("").Sample("capital_question", capital).ToolResult(), nil
	}},
	{name: "test_input_required_result_list_roots", handle: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer := server.RootsResponse(r.Params.InputResponses, "client_roots"); answer != nil {
			return text("%v", answer.Roots), nil
		}
		return server.NewInputRequestBuilder("").Roots("client_roots").ToolResult(), nil
	}},
	{name: "test_input_required_result_request_state", handle: confirms("state-ok")},
	{name: "test_input_required_result_tampered_state", handle: confirms("accepted")},
	{name: "test_input_required_result_multiple_inputs", handle: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(r.Params.InputResponses) == 3 {
			state, err := opened(r)
			return text("all of %s", state), err
		}
		return server.NewInputRequestBuilder(seal("three")).Elicit("user_name", ask("What is your name?", "name", "string")).
			Sample("greeting", greeting).Roots("client_roots").ToolResult(), nil
	}},
	{name: "test_input_required_result_multi_round", handle: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		state, err := opened(r)
		switch {
		case r.Params.RequestState == "":
			return server.NewInputRequestBuilder(seal("first")).Elicit("step1", ask("Step 1: What is your name?", "name", "string")).ToolResult(), nil
		case state == "first" && answered(r, "step1"):
			return server.NewInputRequestBuilder(seal("second")).Elicit("step2", ask("Step 2: What is your favorite color?", "color", "string")).ToolResult(), nil
		case state == "second" && answered(r, "step2"):
			return text("both steps"), nil
		}
		return nil, errors.Join(err, fmt.Errorf("no answer to %q", state))
	}},
	{name: "test_input_required_result_capabilities", handle: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b := server.NewInputRequestBuilder("")
		if transport.Elicits(ctx) {
			b.Elicit("user_name", ask("What is your name?", "name", "string"))
		}
		s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
		if ok && s.GetClientCapabilities().Sampling != nil {
			b.Sample("greeting", greeting)
		}
		return b.ToolResult(), nil
	}},
}

// confirms is a handler that asks for a confirmation, and goes on only with the state that it gave out.
func confirms(says string) server.ToolHandlerFunc {
	return func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if !answered(r, "confirm") {
			return server.NewInputRequestBuilder(seal("confirm")).Elicit("confirm", ask("Please confirm", "ok", "boolean")).ToolResult(), nil
		}
		if _, err := opened(r); err != nil {
			return nil, err
		}
		return text("%s", says), nil
	}
}

func askingPrompt(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	b := server.NewInputRequestBuilder("").Elicit("user_context", ask("What context should the prompt use?", "context", "string"))
	answer := server.ElicitationResponse(r.Params.InputResponses, "user_context")
	if answer == nil {
		return b.PromptResult(), nil
	}
	return mcp.NewGetPromptResult("with context", []mcp.PromptMessage{
		mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(fmt.Sprint(answer.Content)))}), nil
}
