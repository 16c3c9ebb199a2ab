package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// exchange is one POST and its answer.
type exchange struct {
	*httpHandler
	w    http.ResponseWriter
	r    *http.Request
	form accepts
	m    *message
	from *caller // nil in 2026-07-28, where nothing hangs on who sent a message before
}

// post takes one message.
func (h *httpHandler) post(w http.ResponseWriter, r *http.Request) {
	form := accepted(r.Header)
	if form == (accepts{}) {
		h.refuse(w, nil, refuse(mcp.INVALID_REQUEST, "Accept must allow application/json and text/event-stream").
			withStatus(http.StatusNotAcceptable))
		return
	}
	m, id, bad := h.readMessage(w, r, h.maxBody)
	if bad != nil {
		h.refuse(w, id, bad)
		return
	}
	h.deal(w, r, m, form)
}

// deal takes or answers one message.
func (h *httpHandler) deal(w http.ResponseWriter, r *http.Request, m *message, form accepts) {
	from, bad := h.admit(r, m)
	x := &exchange{httpHandler: h, w: w, r: r, form: form, m: m, from: from}
	switch {
	case bad != nil:
		h.refuse(w, m.id, bad)
	case m.isResponse(), m.isNotification():
		x.take()
		w.WriteHeader(http.StatusAccepted)
	default:
		x.answer()
	}
}

// admit applies the rules of the message's own revision and tells who sent it.
func (h *httpHandler) admit(r *http.Request, m *message) (*caller, *rpcError) {
	if isStateless(r.Header, m) {
		if m.isResponse() {
			return nil, refuse(mcp.INVALID_REQUEST, "2026-07-28 has no responses from clients: this server asked nothing")
		}
		if m.isNotification() {
			return nil, nil
		}
		return nil, h.d.checkStateless(r.Header, m)
	}
	if bad := checkVersion(r.Header, m); bad != nil {
		return nil, bad
	}
	if m.method == string(mcp.MethodInitialize) {
		return &caller{owner: h.Owner(r), client: &client{}}, nil
	}
	c, bad := h.caller(r)
	return &c, bad
}

// take deals with what needs no answer. A cancel reaches the sender's own request and no other, and never mcp-go, which
// would look for it among everybody's. A response reaches what asked the sender.
func (x *exchange) take() {
	switch {
	case x.from == nil:
	case x.m.isResponse():
		x.asked.answer(callKey{x.from.owner, x.from.session, idKey(x.m.id)}, x.m)
	case x.m.method == string(mcp.MethodNotificationCancelled):
		if x.from.session != "" && x.m.cancels != "" {
			x.calls.cancel(callKey{x.from.owner, x.from.session, x.m.cancels})
		}
	default:
		x.d.notified(x.r.Context(), x.m, x.from.client)
	}
}

// answer handles a request and answers it.
func (x *exchange) answer() {
	if x.Authorize != nil {
		if err := x.Authorize(x.r.Context(), x.m.call()); err != nil {
			x.forbid(x.w, x.r, x.m, err)
			return
		}
	}
	ctx, cancel, end, bad := x.d.begin(context.WithoutCancel(x.r.Context()), x.m)
	if bad != nil {
		x.refuse(x.w, x.m.id, bad)
		return
	}
	defer end()
	release, bad := x.bind(cancel)
	if bad != nil {
		x.refuse(x.w, x.m.id, bad)
		return
	}
	x.run(ctx, release)
}

// bind ties a call to what its revision lets cancel it: the connection, or a notification of the same session.
func (x *exchange) bind(cancel context.CancelCauseFunc) (release func(), refused *rpcError) {
	if x.from == nil {
		stop := context.AfterFunc(x.r.Context(), func() { cancel(ErrDisconnected) })
		return func() { stop() }, nil
	}
	if x.from.session == "" {
		return func() {}, nil
	}
	release, ok := x.calls.add(callKey{x.from.owner, x.from.session, idKey(x.m.id)}, cancel)
	if !ok {
		return nil, refuse(mcp.INVALID_REQUEST, "a request with this id is still running in this session: use a new id").
			withStatus(http.StatusConflict)
	}
	return release, nil
}

// run calls the handler and writes its answer. The id is free again before its client can know that the call has ended.
func (x *exchange) run(ctx context.Context, release func()) {
	out := newHTTPResponse(x.w, x.form.events, x.KeepAlive)
	handshake := x.m.method == string(mcp.MethodInitialize) && x.from != nil
	if !handshake { // whose answer has a header of its own, and so begins with it
		out.start(streamAfter)
	}
	who := &client{}
	if x.from != nil {
		who = x.from.client
	}
	response := x.d.call(ctx, x.m, who, &outlet{to: out, line: x.line()})
	release()
	status := http.StatusOK
	if x.from == nil {
		status = statusOf(response)
	}
	if _, ok := response.(mcp.JSONRPCResponse); ok && handshake {
		x.w.Header().Set(mcp.HeaderSessionID, x.remember())
	}
	if err := out.finish(x.d.encodeResponse(response, x.m.id), status, x.form.json); err != nil {
		x.Logger.Debug("an MCP response did not reach its client", "method", clip(x.m.method, 64), "error", err)
	}
}

// line returns how the client answers what it is asked during this call, nil if it cannot.
func (x *exchange) line() *line {
	if x.from == nil || x.from.session == "" {
		return nil
	}
	return &line{questions: &x.asked, owner: x.from.owner, session: x.from.session, gone: x.r.Context().Done()}
}

// remember mints the id of a session that has been agreed on, and keeps what the client said of itself if that is short.
func (x *exchange) remember() (id string) {
	id = x.Key.mint(x.from.owner, x.from.client, time.Now())
	if len(x.m.raw) <= rememberBytes {
		x.clients.put(id, x.from.client)
	}
	return id
}
