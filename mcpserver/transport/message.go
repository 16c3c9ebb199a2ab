package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is one JSON-RPC message as it arrived, with the parts that decide its way.
type message struct {
	raw    json.RawMessage
	id     json.RawMessage // as the client wrote it; nil for a notification
	method string          // "" for a response
	params json.RawMessage
	// version is the revision that the message itself declares in _meta, "" where it declares none.
	version string
	// name is params.name: the tool of a tools/call.
	name string
	// uri is params.uri: the resource of a resources/read.
	uri string
	// arguments is params.arguments, of a tools/call.
	arguments json.RawMessage
	// cancels is the id that a notifications/cancelled names, spelled by idKey.
	cancels string
	// result and failure are a response's; one of them is nil.
	result, failure json.RawMessage
}

func (m *message) isResponse() bool     { return m.method == "" }
func (m *message) isNotification() bool { return m.id == nil }

// tool returns the tool that a tools/call names, else "".
func (m *message) tool() string {
	if m.method == string(mcp.MethodToolsCall) {
		return m.name
	}
	return ""
}

// Call is what a request's body asks for.
type Call struct {
	Method string
	// Tool is the one that a tools/call names, URI the resource of whatever names one.
	Tool, URI string
	// Arguments are what a tools/call gives its tool, undecoded; they may be anything.
	Arguments json.RawMessage
}

func (m *message) call() Call {
	return Call{Method: m.method, Tool: m.tool(), URI: m.uri, Arguments: m.arguments}
}

// params is what every method's params may hold and this package looks at. The fields are raw so that a value of the
// wrong type is left to the method that owns it.
type params struct {
	Name      json.RawMessage            `json:"name"`
	URI       json.RawMessage            `json:"uri"`
	Arguments json.RawMessage            `json:"arguments"`
	RequestID json.RawMessage            `json:"requestId"`
	Meta      map[string]json.RawMessage `json:"_meta"`
}

// parse reads one message and refuses what JSON-RPC 2.0, MCP or this transport does not allow, in words that name the
// place and the rule. The id is returned with the error wherever it could be read, so that the refusal reaches its call.
func parse(raw []byte) (*message, json.RawMessage, *rpcError) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if err := checkJSON(raw); err != nil {
		return nil, nil, err
	}
	var envelope struct {
		JSONRPC json.RawMessage `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return nil, nil, refuse(mcp.INVALID_REQUEST, "the message is not a JSON-RPC 2.0 object: "+clip(err.Error(), 200))
	}
	if envelope.ID != nil && idKey(envelope.ID) == "" {
		return nil, nil, refuse(mcp.INVALID_REQUEST, "id must be a string or an integer of at most 256 characters")
	}
	m := &message{raw: raw, id: envelope.ID, params: envelope.Params, result: envelope.Result, failure: envelope.Error}
	if string(envelope.JSONRPC) != `"2.0"` {
		return nil, m.id, refuse(mcp.INVALID_REQUEST, `jsonrpc must be "2.0"`)
	}
	answers := envelope.Result != nil || envelope.Error != nil
	switch {
	case envelope.Method == nil && answers && m.id != nil:
		return m, m.id, nil
	case envelope.Method == nil || *envelope.Method == "":
		return nil, m.id, refuse(mcp.INVALID_REQUEST, "method is missing")
	case answers:
		return nil, m.id, refuse(mcp.INVALID_REQUEST, "a message is a request or a response, not both")
	}
	m.method = *envelope.Method
	return m, m.id, m.readParams()
}

// checkJSON refuses what is not exactly one well-formed object.
func checkJSON(raw []byte) *rpcError {
	if len(raw) == 0 {
		return refuse(mcp.PARSE_ERROR, "the message is empty")
	}
	if !json.Valid(raw) {
		var any json.RawMessage
		return refuse(mcp.PARSE_ERROR, fmt.Sprintf("the message is not valid JSON: %v", json.Unmarshal(raw, &any)))
	}
	switch raw[0] {
	case '[':
		return refuse(mcp.INVALID_REQUEST, "batches are not supported: send one message at a time")
	case '{':
	default:
		return refuse(mcp.INVALID_REQUEST, "the message must be a JSON object")
	}
	if err := scan(raw); err != nil {
		return refuse(mcp.INVALID_REQUEST, err.Error())
	}
	return nil
}

// readParams fills in what the params say.
func (m *message) readParams() *rpcError {
	if len(m.params) == 0 || string(m.params) == "null" {
		return nil
	}
	if m.params[0] != '{' {
		return refuse(mcp.INVALID_PARAMS, "params must be an object")
	}
	var p params
	if err := json.Unmarshal(m.params, &p); err != nil {
		return refuse(mcp.INVALID_PARAMS, "params._meta must be an object")
	}
	m.name, m.uri, m.arguments = text(p.Name), text(p.URI), p.Arguments
	m.version = text(p.Meta[mcp.MetaKeyProtocolVersion])
	if m.method == string(mcp.MethodNotificationCancelled) {
		m.cancels = idKey(p.RequestID)
	}
	return nil
}

// text returns a JSON string's value, or "" where raw is something else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

var integer = regexp.MustCompile(`^-?[0-9]{1,256}$`)

// idKey returns one spelling for all spellings of a request id, so that a cancel finds its request, or "" for what is
// no id. A number and a string never share a spelling.
func idKey(id json.RawMessage) string {
	if integer.Match(id) {
		return string(id)
	}
	var s string
	if len(id) == 0 || id[0] != '"' || json.Unmarshal(id, &s) != nil || len(s) > 256 {
		return ""
	}
	return `"` + s
}
