package transport

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
)

const (
	// DefaultMaxBody is the largest message that a client may send, in bytes.
	DefaultMaxBody = 32 << 20
	// DefaultKeepAlive is the time between two comments on a stream on which nothing else is sent.
	DefaultKeepAlive = 15 * time.Second
	// streamAfter is how long a call may last before its answer becomes a stream.
	streamAfter = time.Second
	// rememberClients is how many clients' own words of themselves are kept, and how many ended sessions.
	rememberClients = 4096
	// rememberBytes is the largest initialize that is remembered.
	rememberBytes = 4 << 10
)

// HTTPConfig says how the endpoint meets its clients.
type HTTPConfig struct {
	// Owner names the caller of a request that has been authenticated, unambiguously: session ids and cancels belong
	// to an owner. Nil: everybody is one owner.
	Owner func(*http.Request) string
	// Key proves session ids; see LoadSessionKey. Empty: a new one, so that ids end with the process.
	Key SessionKey
	// MaxBody bounds a message, in bytes. 0: DefaultMaxBody.
	MaxBody int64
	// AllowedOrigins and AllowedHosts go to NewGuard.
	AllowedOrigins, AllowedHosts []string
	// Authorize decides whether a caller may send a request, by what its body says and no header. An error of kind
	// Forbidden is answered by Forbidden, any other as a JSON-RPC error. Nil: everybody may.
	Authorize func(ctx context.Context, c Call) error
	// Forbidden answers a request that Authorize refused. Nil: status 403 and a JSON-RPC error.
	Forbidden func(w http.ResponseWriter, r *http.Request, err error)
	// KeepAlive is the time between comments on a quiet stream. 0: DefaultKeepAlive.
	KeepAlive time.Duration
	// Logger gets what no client can be told. Nil: slog.Default.
	Logger *slog.Logger
}

// httpHandler is the MCP endpoint.
type httpHandler struct {
	HTTPConfig
	d       *Dispatcher
	guard   *Guard
	maxBody int64
	calls   inflight
	asked   questions
	clients *lru[*client]
	ended   *lru[struct{}]
}

// NewHTTP returns the MCP endpoint, a handler for one path: Streamable HTTP for every revision that mcp-go speaks.
//
// POST takes one message. A request is answered with JSON, or with an event stream once there is progress to report or the
// call has lasted a second. GET is answered 405, as the protocol allows: this server has nothing to say outside of
// requests. DELETE ends a session id: later calls with it get 404, for as long as the id is remembered among the last
// few thousand ended; what it started goes on, as it does when its connection is lost.
func NewHTTP(d *Dispatcher, cfg HTTPConfig) http.Handler {
	h := &httpHandler{
		HTTPConfig: cfg, d: d, maxBody: cfg.MaxBody,
		guard:   NewGuard(cfg.AllowedOrigins, cfg.AllowedHosts),
		clients: newLRU[*client](rememberClients),
		ended:   newLRU[struct{}](rememberClients),
	}
	if h.maxBody <= 0 {
		h.maxBody = DefaultMaxBody
	}
	if h.KeepAlive <= 0 {
		h.KeepAlive = DefaultKeepAlive
	}
	if h.Owner == nil {
		h.Owner = func(*http.Request) string { return "" }
	}
	if len(h.Key) == 0 {
		h.Key = NewSessionKey()
	}
	if h.Logger == nil {
		h.Logger = slog.Default()
	}
	return h
}

// ServeHTTP answers one HTTP request.
func (h *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.foreign(r); err != nil {
		h.refuse(w, nil, fromFault(err))
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		h.methodNotAllowed(w, "POST, DELETE")
	}
}

// foreign returns why a request must not go on that another guard has not let through.
func (h *httpHandler) foreign(r *http.Request) error {
	if r.Context().Value(guardedKey{}) != nil {
		return nil
	}
	return h.guard.Check(r)
}

func (h *httpHandler) methodNotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	h.refuse(w, nil, refuse(mcp.INVALID_REQUEST, "send messages with POST; this server offers no stream outside of requests").
		withStatus(http.StatusMethodNotAllowed))
}

// delete ends a session id of the caller's.
func (h *httpHandler) delete(w http.ResponseWriter, r *http.Request) {
	if isStateless(r.Header, nil) {
		h.methodNotAllowed(w, "POST")
		return
	}
	caller, err := h.caller(r)
	switch {
	case err != nil:
		h.refuse(w, nil, err)
	case caller.session == "":
		h.refuse(w, nil, refuse(mcp.INVALID_REQUEST, "the header Mcp-Session-Id is missing"))
	default:
		h.clients.remove(caller.session)
		h.ended.put(caller.session, struct{}{})
		w.WriteHeader(http.StatusNoContent)
	}
}

// caller is who sends a message of a handshake revision.
type caller struct {
	owner   string
	session string // "" for a client that sends none
	client  *client
}

// caller checks the session id that a request carries, if any. One without is served all the same, since nothing here
// hangs on the session; its calls just cannot be cancelled.
func (h *httpHandler) caller(r *http.Request) (caller, *rpcError) {
	c := caller{owner: h.Owner(r), session: r.Header.Get(mcp.HeaderSessionID)}
	if c.session == "" {
		c.client = &client{version: r.Header.Get(mcp.HeaderProtocolVersion)}
		return c, nil
	}
	known, ok := h.Key.verify(c.session, c.owner)
	if _, ended := h.ended.get(c.session); ended || !ok {
		return c, refuse(mcp.INVALID_REQUEST, "the session of Mcp-Session-Id is not known: send initialize again").
			withStatus(http.StatusNotFound)
	}
	if c.client, ok = h.clients.get(c.session); !ok {
		c.client = known
	}
	return c, nil
}

// refuse answers with an error in JSON-RPC's form. A nil id is written as null.
func (h *httpHandler) refuse(w http.ResponseWriter, id []byte, e *rpcError) {
	payload := h.d.encodeResponse(e.response(id), id)
	if err := newHTTPResponse(w, false, 0).finish(payload, e.status, true); err != nil {
		h.Logger.Debug("an MCP error did not reach its client", "error", err)
	}
}

// forbid answers a request that Authorize refused.
func (h *httpHandler) forbid(w http.ResponseWriter, r *http.Request, m *message, err error) {
	if fault.KindOf(err) == fault.Forbidden && h.Forbidden != nil {
		h.Forbidden(w, r, err)
		return
	}
	h.refuse(w, m.id, fromFault(err))
}
