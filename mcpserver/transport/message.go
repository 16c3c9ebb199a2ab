package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/jsontext"
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

// parse reads one message and refuses what JSON-RPC 2.0, MCP or this transport does not allow, in words that name the
// place and the rule. The id is returned with the error wherever it could be read, so that the refusal reaches its call.
func parse(raw []byte) (*message, json.RawMessage, *rpcError) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if err := checkJSON(raw); err != nil {
		return nil, refusedID(raw, err), err
	}
	e, err := readEnvelope(raw)
	if err != nil {
		return nil, nil, err
	}
	if e.id != nil && idKey(e.id) == "" {
		return nil, nil, refuse(mcp.INVALID_REQUEST, "id must be a string or an integer of at most 256 characters")
	}
	m := &message{raw: raw, id: e.id, params: e.params, result: e.result, failure: e.failure}
	if string(e.version) != `"2.0"` {
		return nil, m.id, refuse(mcp.INVALID_REQUEST, `jsonrpc must be "2.0"`)
	}
	answers := e.result != nil || e.failure != nil
	switch {
	case e.method == nil && answers && m.id != nil:
		return m, m.id, nil
	case e.method == nil || *e.method == "":
		return nil, m.id, refuse(mcp.INVALID_REQUEST, "method is missing")
	case answers:
		return nil, m.id, refuse(mcp.INVALID_REQUEST, "a message is a request or a response, not both")
	}
	m.method = *e.method
	return m, m.id, m.readParams()
}

// refusedID is the id of a request in which something else breaks a rule; nil where it is not told beyond doubt.
func refusedID(raw []byte, why *rpcError) (id json.RawMessage) {
	if why.code == mcp.PARSE_ERROR || raw[0] != '{' {
		return nil
	}
	ids, methods := 0, 0
	_ = jsontext.Members(raw, func(name []byte, value json.RawMessage) error {
		switch {
		case strings.EqualFold(string(name), "id"):
			id = value
			ids++
		case strings.EqualFold(string(name), "method"):
			methods++
		}
		return nil
	})
	if ids != 1 || methods != 1 || scan(id) != nil || idKey(id) == "" {
		return nil
	}
	return id
}

// envelope is the members of a message that JSON-RPC gives a meaning, as they are written.
type envelope struct {
	version, id, params, result, failure json.RawMessage
	method                               *string
}

func readEnvelope(raw []byte) (e envelope, bad *rpcError) {
	var method json.RawMessage
	members(raw, map[string]*json.RawMessage{
		"jsonrpc": &e.version, "id": &e.id, "method": &method, "params": &e.params, "result": &e.result, "error": &e.failure,
	})
	if method == nil || jsontext.IsNull(method) {
		return e, nil
	}
	name, ok := jsontext.Text(method)
	if !ok {
		return e, refuse(mcp.INVALID_REQUEST, "the message is not a JSON-RPC 2.0 object: method is no string")
	}
	e.method = &name
	return e, nil
}

// members sets what is wanted of a valid JSON object's members, as they are written. Case does not count in names, as it does not
// to encoding/json.
func members(object []byte, wanted map[string]*json.RawMessage) {
	_ = jsontext.Members(object, func(name []byte, value json.RawMessage) error {
		if at := wanted[string(name)]; at != nil {
			*at = value
			return nil
		}
		for want, at := range wanted {
			if strings.EqualFold(want, string(name)) {
				*at = value
			}
		}
		return nil
	})
}

// checkJSON refuses what is not exactly one well-formed object.
func checkJSON(raw []byte) *rpcError {
	if len(raw) == 0 {
		return refuse(mcp.PARSE_ERROR, "the message is empty")
	}
	if !jsontext.Valid(raw) {
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
	if len(m.params) == 0 || jsontext.IsNull(m.params) {
		return nil
	}
	if m.params[0] != '{' {
		return refuse(mcp.INVALID_PARAMS, "params must be an object")
	}
	var name, uri, cancels, meta json.RawMessage
	members(m.params, map[string]*json.RawMessage{
		"name": &name, "uri": &uri, "arguments": &m.arguments, "requestId": &cancels, "_meta": &meta,
	})
	if len(meta) > 0 && meta[0] != '{' && !jsontext.IsNull(meta) {
		return refuse(mcp.INVALID_PARAMS, "params._meta must be an object")
	}
	m.name, m.uri = text(name), text(uri)
	_ = jsontext.Members(meta, func(key []byte, value json.RawMessage) error { // case counts here
		if string(key) == mcp.MetaKeyProtocolVersion {
			m.version = text(value)
		}
		return nil
	})
	if m.method == string(mcp.MethodNotificationCancelled) {
		m.cancels = idKey(cancels)
	}
	return nil
}

// text returns a JSON string's value, or "" where raw is something else.
func text(raw json.RawMessage) string {
	s, _ := jsontext.Text(raw)
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
