package transport

import (
	"encoding/json"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
)

// codeBusy is the code for a request that the server could serve at another time; JSON-RPC leaves the range
// -32000…-32019 to implementations.
const codeBusy = -32000

// rpcError is a message that was refused before or instead of being handled.
type rpcError struct {
	code    int
	status  int // the HTTP status that goes with it
	message string
	data    any
}

func (e *rpcError) Error() string { return e.message }

// refuse returns an error for a message that breaks a rule of JSON-RPC or of this transport.
func refuse(code int, message string) *rpcError {
	return &rpcError{code: code, status: http.StatusBadRequest, message: message}
}

// withStatus sets the HTTP status, where it is not 400.
func (e *rpcError) withStatus(status int) *rpcError {
	e.status = status
	return e
}

// fromFault turns an error of the server's own into the form that a client reads, message and hint. Internal ones show
// nothing of the server's insides.
func fromFault(err error) *rpcError {
	kind, body := fault.KindOf(err), fault.BodyOf(err)
	e := &rpcError{code: codeBusy, status: http.StatusOK, message: body.Message}
	if body.Hint != "" {
		e.message += "\nHint: " + body.Hint
	}
	if code, protocol := kind.RPCCode(); protocol {
		e.code, e.status = code, kind.HTTPStatus()
	}
	switch kind {
	case fault.Invalid, fault.NotFound, fault.Conflict:
		e.code = mcp.INVALID_PARAMS
	}
	return e
}

// response returns the JSON-RPC response that carries e. A nil id is written as null, for messages whose id is unknown.
func (e *rpcError) response(id json.RawMessage) mcp.JSONRPCError {
	return mcp.JSONRPCError{
		JSONRPC: mcp.JSONRPC_VERSION,
		ID:      rawID(id),
		Error:   mcp.JSONRPCErrorDetails{Code: e.code, Message: e.message, Data: e.data},
	}
}

// rawID returns an id that is written as the client wrote it: decoding would round large numbers.
func rawID(id json.RawMessage) mcp.RequestId {
	if id == nil {
		return mcp.NewRequestId(nil)
	}
	return mcp.NewRequestId(id)
}

// withID puts the client's own spelling of the id into a response of mcp-go's.
func withID(response mcp.JSONRPCMessage, id json.RawMessage) mcp.JSONRPCMessage {
	switch r := response.(type) {
	case mcp.JSONRPCResponse:
		r.ID = rawID(id)
		return r
	case mcp.JSONRPCError:
		r.ID = rawID(id)
		return r
	}
	return response
}

// withURI names the resource in the error about one that is not there, as 2026-07-28 has it (server/resources).
func withURI(response mcp.JSONRPCMessage, m *message) mcp.JSONRPCMessage {
	failed, ok := response.(mcp.JSONRPCError)
	missing := failed.Error.Code == mcp.RESOURCE_NOT_FOUND || failed.Error.Code == mcp.INVALID_PARAMS
	if !ok || !missing || failed.Error.Data != nil || m.method != string(mcp.MethodResourcesRead) {
		return response
	}
	failed.Error.Data = map[string]any{"uri": m.uri}
	return failed
}

// statusOf returns the HTTP status that 2026-07-28 prescribes for a response, so that intermediaries need not read it.
// The revisions before answer 200 to whatever was handled.
func statusOf(response mcp.JSONRPCMessage) int {
	failed, ok := response.(mcp.JSONRPCError)
	if !ok {
		return http.StatusOK
	}
	switch failed.Error.Code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.PARSE_ERROR, mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.HEADER_MISMATCH,
		mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
