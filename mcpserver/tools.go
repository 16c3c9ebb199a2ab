package mcpserver

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/internal/fault"
	"cellblock/mcpserver/terminal"
)

// toolSpec is one tool. Every hint must be set: a client shows them to its user before he agrees to a call.
type toolSpec struct {
	name, title, description string
	input                    []mcp.ToolOption
	output                   string // JSON Schema of structuredContent; empty for none
	readOnly, destructive    bool
	idempotent               bool
	handle                   server.ToolHandlerFunc
}

// listSchema is the schema of structuredContent that holds a list of objects. It names only what each must have: every
// model reads it with every call.
func listSchema(list string, required ...string) string {
	return fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"array","items":{"type":"object","required":["%s"]}}},"required":[%q]}`,
		list, strings.Join(required, `","`), list)
}

// tool is the specification in mcp-go's form. No tool reaches anything outside its sandbox: the world is closed.
func (t toolSpec) tool() mcp.Tool {
	options := append([]mcp.ToolOption{
		mcp.WithToolTitle(t.title), mcp.WithDescription(t.description),
		mcp.WithReadOnlyHintAnnotation(t.readOnly), mcp.WithDestructiveHintAnnotation(t.destructive),
		mcp.WithIdempotentHintAnnotation(t.idempotent), mcp.WithOpenWorldHintAnnotation(false),
		mcp.WithSchemaAdditionalProperties(false),
	}, t.input...)
	if t.output != "" {
		options = append(options, mcp.WithRawOutputSchema([]byte(t.output)))
	}
	tool := mcp.NewTool(t.name, options...)
	tool.Annotations.Title = ""
	return tool
}

// recovered turns a handler's panic into an error of that call alone.
func (s *service) recovered(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.Logger.Error("tool handler panicked", "tool", r.Params.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				result, err = toolError(fault.New(fault.Internal, "%s failed inside the server", r.Params.Name)), nil
			}
		}()
		return next(ctx, r)
	}
}

// ErrorMeta is the key in _meta of a result that is an error of ours, for programs: its kind, as in other answers.
const ErrorMeta = "cellblock/error"

// toolError is a result that tells the model what went wrong and what it can do.
func toolError(err error) *mcp.CallToolResult {
	result := mcp.NewToolResultError(terminal.Plain("Error: " + fault.Text(err)))
	result.Meta = &mcp.Meta{AdditionalFields: map[string]any{ErrorMeta: map[string]any{"kind": fault.KindOf(err)}}}
	return result
}
