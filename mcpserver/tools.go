package mcpserver

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/internal/fault"
)

// The scopes that tools need beside "<language>:execute".
const (
	ScopeRead   = "sessions:read"
	ScopeManage = "sessions:manage"
	// ScopeFilesRead is for reading files of workspaces, ScopeFilesWrite for writing and deleting them.
	ScopeFilesRead  = "files:read"
	ScopeFilesWrite = "files:write"
)

const (
	executePrefix  = "execute_"
	executeSuffix  = ":execute"
	getExecution   = "get_execution"
	restoreSession = "restore_session"
)

// scopes is the one table of what a tool needs, but for the execute tools, whose scope carries their language. An empty
// scope is for every caller whose token verifies.
var scopes = map[string]string{
	getExecution:        ScopeRead, // or that of the session's language
	"list_sessions":     ScopeRead,
	"list_executions":   ScopeRead,
	"inspect_variables": ScopeRead,
	"interrupt_session": ScopeManage,
	"restart_session":   ScopeManage,
	"close_session":     ScopeManage,
	"list_files":        ScopeFilesRead,
	"read_file":         ScopeFilesRead,
	"write_file":        ScopeFilesWrite,
	"delete_file":       ScopeFilesWrite,
	ExecuteFile:         ScopeFilesRead, // and that of the script's language
	restoreSession:      "",             // that of the session's language
	"health":            "",
}

// RequiredScope returns the scope that a call of a tool needs, "" if none, and whether there can be a tool of that name.
// The transport may refuse a call by it before the call is dispatched.
func RequiredScope(tool string) (scope string, known bool) {
	if scope, known = scopes[tool]; known {
		return scope, true
	}
	if language, ok := strings.CutPrefix(tool, executePrefix); ok && language != "" {
		return language + executeSuffix, true
	}
	return "", false
}

// ToolScopes returns the scope of every tool that New registers for cfg.
func ToolScopes(cfg Config) map[string]string {
	table := map[string]string{}
	for _, t := range newService(cfg).tools() {
		table[t.name], _ = RequiredScope(t.name)
	}
	return table
}

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

// filterList takes from a list the tools that the caller may not call.
func (s *service) filterList(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	result.Tools = slices.DeleteFunc(result.Tools, func(t mcp.Tool) bool { return !s.allowed(ctx, t.Name) })
}

func (s *service) allowed(ctx context.Context, tool string) bool {
	return s.Allows(tool, func(scope string) bool { return s.Allowed(ctx, scope) })
}

// Allows tells whether a caller who has some scopes may call a tool.
func (cfg Config) Allows(tool string, has func(scope string) bool) bool {
	_, known := RequiredScope(tool)
	return known && cfg.Lacks(tool, has) == ""
}

// Lacks returns the scope that a call of a tool needs and the caller does not have, "" if he may call it: the one that the
// tool requires. With that of any language get_execution may be called too, because who may run a cell may read its result;
// without one, execute_file and restore_session may not.
func (cfg Config) Lacks(tool string, has func(scope string) bool) string {
	scope, _ := RequiredScope(tool)
	languages := cfg.languages()
	runs := slices.ContainsFunc(languages, func(l string) bool { return has(l + executeSuffix) })
	switch {
	case tool == getExecution && runs:
		return ""
	case scope != "" && !has(scope):
		return scope
	case (tool == ExecuteFile || tool == restoreSession) && !runs && len(languages) > 0:
		return languages[0] + executeSuffix
	}
	return ""
}

// guarded refuses calls that the caller's scopes do not allow. A tool filter of mcp-go would say that there is no such
// tool; this says what is missing.
func (s *service) guarded(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if !s.allowed(ctx, r.Params.Name) {
			scope := s.Lacks(r.Params.Name, func(scope string) bool { return s.Allowed(ctx, scope) })
			return toolError(fault.New(fault.Forbidden, "%s needs the scope %q, which this token does not have",
				r.Params.Name, scope).WithHint("use a token with the scope %q", scope)), nil
		}
		return next(ctx, r)
	}
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
	result := mcp.NewToolResultError(plain("Error: " + fault.Text(err)))
	result.Meta = &mcp.Meta{AdditionalFields: map[string]any{ErrorMeta: map[string]any{"kind": fault.KindOf(err)}}}
	return result
}
