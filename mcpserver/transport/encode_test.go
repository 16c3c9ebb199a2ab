package transport

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

func resources(contents ...mcp.ResourceContents) mcp.JSONRPCResponse {
	return mcp.JSONRPCResponse{JSONRPC: "2.0", ID: mcp.NewRequestId(7), Result: mcp.ReadResourceResult{Contents: contents}}
}

// Large texts are written as the others are, at their places, and stay what they are.
func TestEncodeOfLargeTexts(t *testing.T) {
	large := strings.Repeat("€\"<\n\\x00", largeText)
	for name, v := range map[string]any{
		"small":       resources(mcp.TextResourceContents{URI: "u", Text: "a <b>"}),
		"large":       resources(mcp.TextResourceContents{URI: "u", MIMEType: "m", Text: large}),
		"a blob":      resources(mcp.BlobResourceContents{URI: "u", Blob: strings.Repeat("AAAA", largeText)}),
		"several":     resources(mcp.TextResourceContents{Text: large}, mcp.TextResourceContents{Text: "x"}, mcp.TextResourceContents{Text: "y" + large}),
		"no resource": mcp.JSONRPCResponse{JSONRPC: "2.0", Result: map[string]any{"text": large}},
		"an error":    mcp.JSONRPCError{JSONRPC: "2.0", Error: mcp.NewJSONRPCErrorDetails(1, large, nil)},
	} {
		got, err := encode(v)
		want, _ := encodeWhole(v)
		if err != nil || !bytes.Equal(got, want) || !json.Valid(got) {
			t.Errorf("%s: %v, %.200s", name, err, got)
		}
	}
}
