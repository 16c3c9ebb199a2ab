package main

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"cellblock/auth"
	"cellblock/internal/fault"
)

// maxRefusal bounds what is read of an answer that refuses a request, in bytes; those of ours are a few hundred.
const maxRefusal = 64 << 10

// refusals makes errors of ours of the answers by which a server of ours refuses a request before MCP sees it: a token that
// does not hold, a scope that is missing, a host that is not allowed. The MCP client would keep their status alone. What
// is no answer of such a server is said to be none.
type refusals struct{ http.RoundTripper }

// RoundTrip sends a request.
func (r refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.sendPatiently(request)
	if err != nil {
		return nil, unreachable(request.URL, err)
	}
	if request.Method != http.MethodPost || response.StatusCode < http.StatusBadRequest && isMCP(response) {
		return response, nil
	}
	start, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if refused := refusalIn(start); err == nil && refused != nil {
		_ = response.Body.Close()
		return nil, refused
	}
	if err == nil && !isRPC(start) {
		_ = response.Body.Close()
		return nil, foreign(request.URL, response.StatusCode, string(start))
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), response.Body), response.Body}
	return response, nil
}

// isMCP tells whether an answer is in a form that MCP has.
func isMCP(response *http.Response) bool {
	form, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return form == "application/json" || form == "text/event-stream" || response.StatusCode == http.StatusAccepted
}

// isRPC tells whether a body is a message of JSON-RPC.
func isRPC(body []byte) bool {
	var message struct{ JSONRPC string }
	return json.Unmarshal(body, &message) == nil && message.JSONRPC != ""
}

// refusalIn returns the error that a body stands for, nil if it is none of ours.
func refusalIn(body []byte) error {
	var said struct {
		Kind          *fault.Kind
		Message, Hint string
	}
	if json.Unmarshal(body, &said) != nil || said.Kind == nil || said.Message == "" {
		return nil
	}
	err := fault.New(*said.Kind, "the server refuses: %s", said.Message)
	if *said.Kind == fault.Unauthenticated || *said.Kind == fault.Forbidden {
		said.Hint = strings.TrimSpace(said.Hint + " In dev mode `" + mint(said.Message) + "`, with the server's --data-dir, mints one.")
	}
	return err.WithHint("%s", said.Hint)
}

// mint returns the command that makes the token that a refusal asks for: the operators' scope is in none by default.
func mint(refusal string) string {
	if strings.Contains(refusal, strconv.Quote(auth.ScopeAdmin)) {
		return "cellblock token --scopes " + auth.ScopeAdmin
	}
	return "cellblock token"
}
