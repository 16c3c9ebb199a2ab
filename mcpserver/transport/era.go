package transport

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/jsontext"
)

// isStateless reports whether an HTTP message belongs to 2026-07-28 or later, by its header or its own _meta. Every
// message is judged by itself: both kinds of clients share the endpoint.
func isStateless(h http.Header, m *message) bool {
	return mcp.IsModernProtocol(h.Get(mcp.HeaderProtocolVersion)) || m != nil && mcp.IsModernProtocol(m.version)
}

// checkVersion refuses a handshake revision's message that names a revision nobody knows. Initialize is left to agree on one.
func checkVersion(h http.Header, m *message) *rpcError {
	version := h.Get(mcp.HeaderProtocolVersion)
	if version == "" || m.method == string(mcp.MethodInitialize) || mcp.IsValidProtocolVersion(version) {
		return nil
	}
	return unsupported(version)
}

// checkStateless holds a 2026-07-28 request against its headers: the revision is stated in both and is the same, and
// Mcp-Method, Mcp-Name and Mcp-Param-* say what the body says.
func (d *Dispatcher) checkStateless(h http.Header, m *message) *rpcError {
	version := h.Get(mcp.HeaderProtocolVersion)
	switch {
	case h.Get(mcp.HeaderLastEventID) != "":
		return refuse(mcp.HEADER_MISMATCH, "Last-Event-ID has no meaning in 2026-07-28: send the request again with a new id")
	case version == "":
		return refuse(mcp.HEADER_MISMATCH, "the header MCP-Protocol-Version is missing; _meta says "+clip(m.version, 32))
	case m.version == "":
		return refuse(mcp.INVALID_PARAMS, "params._meta is missing "+mcp.MetaKeyProtocolVersion)
	case m.version != version:
		return refuse(mcp.HEADER_MISMATCH, fmt.Sprintf("the header MCP-Protocol-Version says %s, _meta says %s", clip(version, 32), clip(m.version, 32)))
	case !mcp.IsValidProtocolVersion(version):
		return unsupported(version)
	}
	err := mcp.ValidateStandardHeaders(h.Get, version, mcp.MCPMethod(m.method), m.called())
	if err == nil && m.tool() != "" {
		err = d.checkParamHeaders(h, m)
	}
	if err != nil {
		return refuse(mcp.HEADER_MISMATCH, clip(err.Error(), 300))
	}
	return nil
}

// called is what mcp-go holds against Mcp-Name, without the rest of the params, which may be long and were read already.
func (m *message) called() json.RawMessage {
	params := jsontext.Append([]byte(`{"name":`), []byte(m.name))
	return append(jsontext.Append(append(params, `,"uri":`...), []byte(m.uri)), '}')
}

// checkParamHeaders compares the Mcp-Param-* headers that a tool's schema asks for with the arguments.
func (d *Dispatcher) checkParamHeaders(h http.Header, m *message) error {
	tool := d.server.GetTool(m.tool())
	if tool == nil {
		return nil // refused as unknown where it is called
	}
	if tool.Tool.RawInputSchema == nil && !asksForHeaders(tool.Tool.InputSchema.Properties) {
		return nil // as with all tools of ours; mcp-go would write and read the schema to find that out
	}
	lookup := func(name string) (string, bool) {
		values := h.Values(name)
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	}
	return mcp.ValidateParamHeadersLookup(lookup, &tool.Tool, m.params)
}

// asksForHeaders tells whether a schema, or what is in it, may ask for a header. What it does not know may.
func asksForHeaders(schema any) bool {
	switch schema := schema.(type) {
	case map[string]any:
		for key, value := range schema {
			if key == "x-mcp-header" || asksForHeaders(value) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(schema, asksForHeaders)
	case nil, string, []string, bool, int, float64:
		return false
	}
	return true
}

// unsupported tells a client which revisions it may choose from.
func unsupported(version string) *rpcError {
	e := mcp.UnsupportedProtocolVersionError{Version: clip(version, 32), Supported: mcp.ValidProtocolVersions}.JSONRPCError()
	return &rpcError{code: e.Error.Code, status: http.StatusBadRequest, message: e.Error.Message, data: e.Error.Data}
}
