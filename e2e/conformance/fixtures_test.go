package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/mcpserver/transport"
)

// The tools, resources and prompts that the suite asks servers to have. Names and texts are the suite's own.

// tool is a fixture: what it is called, what it takes, what it does.
type tool struct {
	name   string
	input  []mcp.ToolOption
	handle server.ToolHandlerFunc
}

func (f tool) add(s *server.MCPServer) {
	options := append([]mcp.ToolOption{mcp.WithDescription("What the conformance suite expects of " + f.name)}, f.input...)
	s.AddTool(mcp.NewTool(f.name, options...), f.handle)
}

// gives is a handler with always the same content.
func gives(content ...mcp.Content) server.ToolHandlerFunc {
	return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

func text(format string, args ...any) *mcp.CallToolResult {
	return mcp.NewToolResultText(fmt.Sprintf(format, args...))
}

// onePixel is a PNG, tone a WAV of one sample.
var (
	onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
	tone     = base64.StdEncoding.EncodeToString([]byte("RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00" +
		"\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00"))
)

func embedded(uri, mime, text string) mcp.Content {
	return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: text})
}

var contentTools = []tool{
	{name: "test_simple_text", handle: gives(mcp.NewTextContent("This is a simple text response for testing."))},
	{name: "test_image_content", handle: gives(mcp.NewImageContent(onePixel, "image/png"))},
	{name: "test_audio_content", handle: gives(mcp.NewAudioContent(tone, "audio/wav"))},
	{name: "test_embedded_resource", handle: gives(
		embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))},
	{name: "test_multiple_content_types", handle: gives(
		mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(onePixel, "image/png"),
		embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`))},
	{name: "test_error_handling", handle: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	}},
	{name: "test_header_tool", // for the scenario about x-mcp-header, which takes any tool that has it
		input: []mcp.ToolOption{mcp.WithString("region", mcp.Required(), func(schema map[string]any) { schema["x-mcp-header"] = "Region" })},
		handle: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("region %s", r.GetString("region", "")), nil
		}},
}

// schemaTool has a schema of JSON Schema 2020-12 that must come through as it is.
var schemaTool = mcp.NewToolWithRawSchema("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", json.RawMessage(`{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]}, "else": {"required": ["email"]},
	"additionalProperties": false
}`))

// liveTools tell something before their result. They go through transport.Notify, as the execute tools do.
var liveTools = []tool{
	{name: "test_tool_with_logging", handle: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := logged(ctx, message); err != nil {
				return nil, err
			}
			pause()
		}
		return text("Tool with logging executed successfully"), nil
	}},
	{name: "test_logging_tool", handle: func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.LogLevel != "" {
			return text("logged"), logged(ctx, "asked for")
		}
		return text("nobody asked for logs"), nil
	}},
	{name: "test_tool_with_progress", handle: func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, percent := range []int{0, 50, 100} {
			if r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
				break
			}
			if err := transport.Notify(ctx, "notifications/progress", map[string]any{
				"progressToken": r.Params.Meta.ProgressToken, "progress": percent, "total": 100}); err != nil {
				return nil, err
			}
			pause()
		}
		return text("done"), nil
	}},
}

// pause is the suite's own: it wants to see that what was told before arrives before.
func pause() { time.Sleep(50 * time.Millisecond) }

func logged(ctx context.Context, message string) error {
	return transport.Notify(ctx, "notifications/message", map[string]any{"level": "info", "logger": "fixtures", "data": message})
}

// addMutations gives s the tools with which the suite changes its lists, to see who is told.
func addMutations(s *server.MCPServer) {
	tool{name: "test_trigger_tool_change", handle: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tool{name: "test_comes_and_goes", handle: gives()}.add(s)
		s.DeleteTools("test_comes_and_goes")
		return text("changed"), nil
	}}.add(s)
	tool{name: "test_trigger_prompt_change", handle: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddPrompt(mcp.NewPrompt("test_comes_and_goes"), nil)
		s.DeletePrompts("test_comes_and_goes")
		return text("changed"), nil
	}}.add(s)
}

func addFixtures(s *server.MCPServer) {
	for _, list := range [][]tool{contentTools, liveTools, askingTools, formTools} {
		for _, f := range list {
			f.add(s)
		}
	}
	s.AddTool(schemaTool, gives(mcp.NewTextContent("never called")))
	addMutations(s)
	addResources(s)
	addPrompts(s)
}
