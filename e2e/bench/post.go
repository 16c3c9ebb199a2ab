package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
)

// poster speaks MCP as the specification of 2026-07-28 has it, and does nothing besides: no client takes less. The peers'
// clients are no thicker.
type poster struct{ url, token string }

// call calls a tool.
func (p poster) call(ctx context.Context, tool string, args map[string]any) error {
	return p.ask(ctx, mcp.MethodToolsCall, tool, map[string]any{"name": tool, "arguments": args})
}

// ask makes a request, whose name is what its params name, and returns an error if it is answered with one.
func (p poster) ask(ctx context.Context, method mcp.MCPMethod, name string, params map[string]any) error {
	params["_meta"] = map[string]any{
		mcp.MetaKeyProtocolVersion:    mcp.LATEST_PROTOCOL_VERSION,
		mcp.MetaKeyClientInfo:         mcp.Implementation{Name: "cellblock-bench", Version: "1"},
		mcp.MetaKeyClientCapabilities: struct{}{},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + p.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		mcp.HeaderProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, mcp.HeaderMethod: string(method), mcp.HeaderName: name,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return readAnswer(text)
}

// readAnswer reads a response, be it an event or a body.
func readAnswer(text []byte) error {
	if _, data, isEvent := bytes.Cut(text, []byte("\ndata: ")); isEvent && text[0] != '{' {
		text = data
	}
	var said struct {
		Result *struct{ IsError bool }
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&said); err != nil {
		return fmt.Errorf("%.300s: %w", text, err)
	}
	if said.Result == nil || said.Result.IsError {
		return fmt.Errorf("the server answers %.300s", text)
	}
	return nil
}
