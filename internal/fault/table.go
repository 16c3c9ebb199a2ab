package fault

import (
	"errors"
	"fmt"
	"net/http"
)

// row is what a kind means to each kind of reader.
type row struct {
	name   string
	status int // HTTP
	rpc    int // JSON-RPC error code; 0: the error is a tool's result, whose text the model reads
	exit   int // of a command
}

// JSON-RPC error codes (JSON-RPC 2.0, section 5.1; -32000 to -32019 are the implementation's own in MCP 2026-07-28).
const (
	rpcInternal        = -32603
	rpcUnauthenticated = -32001
	rpcForbidden       = -32003
)

// statusClientClosed is what proxies log for a request whose client went away; nobody is left to read it.
const statusClientClosed = 499

// table is the one place that says how a kind looks from outside.
//
// A model can do something about most errors, so they are results of the tool with isError (MCP, "Tools", "Error
// handling"). Only what no change of the arguments can mend is a protocol error. Exit codes are those of sysexits.h and
// of timeout(1) where they have one; 1 is left to code that ran and failed, 2 is a wrong command line as everywhere.
var table = [...]row{
	Internal:        {"internal", http.StatusInternalServerError, rpcInternal, 70},
	Invalid:         {"invalid", http.StatusBadRequest, 0, 2},
	NotFound:        {"not_found", http.StatusNotFound, 0, 66},
	Conflict:        {"conflict", http.StatusConflict, 0, 65},
	Busy:            {"busy", http.StatusTooManyRequests, 0, 75},
	Unauthenticated: {"unauthenticated", http.StatusUnauthorized, rpcUnauthenticated, 77},
	Forbidden:       {"forbidden", http.StatusForbidden, rpcForbidden, 77},
	Unavailable:     {"unavailable", http.StatusServiceUnavailable, 0, 69},
	Timeout:         {"timeout", http.StatusGatewayTimeout, 0, 124},
	Cancelled:       {"cancelled", statusClientClosed, 0, 130},
	Died:            {"died", http.StatusBadGateway, 0, 71},
}

// row returns k's row; what is no kind at all is Internal.
func (k Kind) row() row {
	if k < 0 || int(k) >= len(table) {
		return table[Internal]
	}
	return table[k]
}

// String returns the kind's name as it stands in JSON and logs: "not_found".
func (k Kind) String() string { return k.row().name }

// HTTPStatus returns the status of a response that reports an error of this kind.
func (k Kind) HTTPStatus() int { return k.row().status }

// RPCCode returns the JSON-RPC code of a protocol error, and false where MCP wants a tool's result with isError instead.
func (k Kind) RPCCode() (code int, protocol bool) {
	code = k.row().rpc
	return code, code != 0
}

// ExitCode returns the exit code of a command that failed with an error of this kind. It is never 0 or 1.
func (k Kind) ExitCode() int { return k.row().exit }

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes, so that a client of the server's JSON gets its kinds back.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, r := range table {
		if r.name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("fault: no kind %q", text)
}

// ExitCode returns the exit code of a command that ended with err: 0 without an error.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return KindOf(err).ExitCode()
}

// Body is how an error stands in a JSON response.
type Body struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// BodyOf returns err for a caller outside. What carries no kind may speak of the server's insides, so it is not shown:
// the caller gets a neutral sentence, the log must have the rest.
func BodyOf(err error) Body {
	kind := KindOf(err)
	var e *Error
	if kind == Internal && !errors.As(err, &e) {
		return Body{Kind: Internal, Message: "internal error", Hint: "Look into the server's log."}
	}
	return Body{Kind: kind, Message: err.Error(), Hint: Hint(err)}
}
